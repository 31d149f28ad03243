package row

import (
	"cmp"
	"time"
)

// Place is where a task stands in the order of due times, and of ids within one. A due time that is not set comes
// first.
type Place struct {
	Due Time
	ID  int64
}

// Compare orders places.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.Due, other.Due), cmp.Compare(p.ID, other.ID))
}

// Span is a part of the index (tag, status, due_time), in one direction.
type Span struct {
	Status Status
	Tag    string
	Padded bool // tags count too that differ only in spaces at their ends, where the index does not tell them apart

	From, To Time   // due_time within [From, To); zero is open; either leaves out rows without a due time
	Down     bool   // the last place first
	After    *Place // only places that come after it in this direction; nil for all
}

// Match is a condition on rows, whatever their place. Zero fields do not ask.
type Match struct {
	Status    *Status
	Tag       string
	Key       string
	From, To  Time          // due_time within [From, To)
	LateBy    time.Duration // the first attempt began more than so late, or has not begun and was that late LateAt
	LateAt    Time          // zero: now
	Error     string        // a part of error_stack, byte by byte
	CreatedBy Time          // created then or before
}

// Sized is a row with about how much memory it takes.
type Sized struct {
	ID    int64
	Bytes int
}

// Failure is the beginning of a row's last error.
type Failure struct {
	ID    int64
	Tag   string
	At    Time   // due_time, which is when a failed row has failed
	Error string // at most [FailureSize] bytes
}

// FailureSize is how much of an error tells errors apart.
const FailureSize = 300

// Pair names the rows of a tag in one status.
type Pair struct {
	Status Status
	Tag    string
}

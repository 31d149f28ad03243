package row

import (
	"math/bits"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/ids"
)

// Claim asks for pending rows, each at the version that it was seen at, in one guarded UPDATE. It changes
//
//	status=executing, version+1, attempt+1, executor, ip_address, due_time = later of now and due_time, plus ttr,
//	start_time = later of now and due_time where it is not set
//
// of every named row that is still pending at the named version. A ttr below [MinTTR] counts as MinTTR.
type Claim struct {
	Rows     []Ref
	Executor Executor // fresh for each claim: the read-back finds the winners by it
	IP       uint32
	// Bytes bounds the bodies that are read back; 0: all are. The first one is read whatever its size.
	Bytes int
}

// Claimed is what a claim won, as it was read back.
type Claimed struct {
	// Rows have their bodies, and the lease's end as Due. Delay, Created, Updated and Late, which no attempt needs, are
	// not read.
	Rows    []Row
	Unread  []Row // were won like Rows, and have no bodies, because these would exceed the bound
	Reading Reading
	// Broken lists rows that were claimed but cannot be decoded, each with the reason.
	Broken []Broken
}

// Broken is a row that cannot be decoded: garbage written by hand, or an unknown status.
type Broken struct {
	Ref
	Status Status // as stored, whatever it is
	Reason string
	Read   Row // what could be read of it, the id at least
}

// Lease is a claimed row whose lease is to end at now + TTR, and at the earliest at now + [MinTTR]. The version, which
// is the lease token, does not change.
type Lease struct {
	Ref
	TTR       time.Duration
	Least     bool                 // a lease that ends later is kept
	Executor  Executor             // new executor; zero keeps it
	Execution Time                 // new start_time; zero keeps it
	Late      delaytask.LateReason // new late_reason; "" keeps it
}

// Change is one fenced transition with all new values: a caller that knows ID and Version knows the row, so nothing is
// computed from what is stored. It applies if and only if the row is still at Version with status From. The version
// grows by 1.
type Change struct {
	ID      int64
	Version int64
	From    Status
	To      Status

	// LeaseOver adds the guard due_time < now on the server. Rescues need it, because a renewal changes due_time and
	// not the version.
	LeaseOver bool

	// LeaseBy adds the guard that the lease, or the wait, ends by this time. A cancel that counts on that needs it for
	// the same reason. Zero adds none.
	LeaseBy Time

	Due        Time // new due_time: next attempt, or when To was reached where that is final
	Attempt    int
	CrashCount int
	Execution  Time                 // new start_time; zero: none
	Late       delaytask.LateReason // new late_reason; "" keeps it, or clears it where Execution is zero
	ErrorStack string
	Errors     []byte
	Expected   Time          // zero keeps expected_time; set only by a reschedule
	Delay      time.Duration // new delay_time; written only together with Expected
	Body       []byte        // nil keeps message_body; one that is empty and not nil empties it
	Executor   Executor      // new executor; a settle keeps it, a rescue writes zero

	SameExecutor bool // the guard implies that the row has Executor already, so it need not be written
}

// Window asks for pending rows by due time, in the order (due, id).
type Window struct {
	Tags    []string // only these; none means no rows
	Share   *Share   // only its rows; nil means all
	From    Time     // inclusive; zero means from the beginning, rows without a due time included
	AfterID int64    // of the rows due exactly at From only those with a larger id; 0 for all
	To      Time     // exclusive
	Lacking bool     // rows without a due time, too, although the window has a beginning
	Limit   int
}

// Share is some of a tag's rows, as a node divides them with others: a bit for each [ids.HashSlot].
type Share [ids.HashSlots / 64]uint64

// Add adds the rows of a slot.
func (s *Share) Add(slot int) { s[slot/64] |= 1 << (slot % 64) }

// Has reports whether the row is of the share.
func (s *Share) Has(id int64) bool { return s.HasSlot(ids.HashSlot(id)) }

// HasSlot reports whether the rows of a slot are of the share.
func (s *Share) HasSlot(slot int) bool { return s[slot/64]>>(slot%64)&1 == 1 }

// Or returns the rows of both shares.
func (s Share) Or(other Share) Share {
	for i := range s {
		s[i] |= other[i]
	}
	return s
}

// Slots returns how many slots the share has.
func (s *Share) Slots() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Has reports whether the window has the row, by its share alone.
func (w *Window) Has(id int64) bool { return w.Share == nil || w.Share.Has(id) }

// Size is about how much memory the row takes.
func (r *Row) Size() int {
	const fixed = 1 << 9
	return fixed + len(r.Body) + len(r.Headers) + len(r.ErrorStack) + len(r.Errors)
}

// TagState is one row of delay_task_tag.
type TagState struct {
	Tag    string
	Paused bool
	Reason string // of the pause
}

// Node is one row of delay_task_node: a process that leased a node number.
type Node struct {
	Number    int
	Token     string // drawn at start; guards every write to the row
	Name      string
	Host      string // which machine and pid namespace PID belongs to
	PID       int
	StartedAt int64 // start time of the process as the kernel counts it: distinguishes a reused pid
	Address   string
	Version   string
	Tags      []string // served, sorted; a node that was not started serves none
	Leaving   bool
	Wake      Wake
	Declares  Declares
	Heartbeat Time
}

// TagCount is a tag that has rows of the status.
type TagCount struct {
	Tag    string
	Status Status
	Oldest Time // smallest due_time, or the one that comes first in the order of a span
}

// Lateness is execution_time - expected_time of one finished row.
type Lateness struct {
	Tag  string
	Late time.Duration
}

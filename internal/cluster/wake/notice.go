package wake

import "github.com/delaytask/delaytask/internal/row"

// Notice says which rows a process may not have seen: rows of a tag that are due from one moment to another.
type Notice struct {
	Tag      string
	From, To row.Time

	// Share and Of say which of these rows the sender means: the ones for which [ids.OneOf] returns Share of Of. With
	// Of 0 the process takes those that are its own by its view of the nodes.
	Share, Of int

	// State says that the tag was paused or resumed.
	State bool
}

// SameRows reports whether both tell of rows of one tag for one share.
func (n Notice) SameRows(other Notice) bool { return n.key() == other.key() }

// Merge widens the span of n by another one's.
func (n Notice) Merge(other Notice) Notice {
	n.From, n.To = min(n.From, other.From), max(n.To, other.To)
	return n
}

// key is what notices of one process are merged by.
type key struct {
	tag       string
	share, of int
	state     bool
}

func (n Notice) key() key { return key{n.Tag, n.Share, n.Of, n.State} }

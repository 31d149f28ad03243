package overview

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Process says what only the process that reads can tell.
type Process struct {
	Clock func() Clock
	Apart func() []string // the servers of two databases that answer at one address; nil where there is one
	// Replica says whether the server is one. It is nil where a server is never one. Its error counts as no.
	Replica   func(ctx context.Context) (Replica, error)
	Hanging   func() []Hanging
	Retention map[row.Status]time.Duration // of ended tasks; 0: for ever
	// Locks returns the transactions that hold locks on rows for longer than [LockedFor]. It is nil where the database
	// has no such locks. Its error has row.ClassOperator where the account lacks a privilege.
	Locks func(ctx context.Context) ([]Lock, error)
	// LockedTags returns the tags whose writes wait in this process, because another transaction has locked a range of
	// their rows, sorted.
	LockedTags func() []string
}

// Replica is what a server says of its changes.
type Replica struct {
	Source   string // whose changes it applies, "" for none
	ReadOnly bool   // it takes no writes
}

// Clock is what a process knows of the database's time.
type Clock struct {
	Width time.Duration // between its bounds
	Held  bool          // it knows nothing, so that no task starts
}

// Hanging is a processor that ignores that its context has ended.
type Hanging struct {
	ID      int64 // of its task
	Tag     string
	Attempt int
	Since   row.Time // when it was called
	Stack   string
}

// LockedFor is how long a transaction has been open that is worth a look. delaytask's own take milliseconds.
const LockedFor = 10 * time.Second

// Lock is a transaction that is open for long and has locked rows.
type Lock struct {
	Thread string // of the server, for KILL
	Age    time.Duration
	Rows   int64
	Tasks  bool // rows of tasks are among them; false where the server does not tell
}

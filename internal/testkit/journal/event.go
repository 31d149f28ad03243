// Package journal is what a simulated or a real run under faults leaves behind: one event for everything that a process
// did, was told or saw, in the order in which it happened. Package judge decides from it alone whether the promises
// held, so it can decide again at any time, on any machine.
package journal

import "time"

// Event is one line of a journal. Fields that mean nothing for its kind are empty and left out of the file.
type Event struct {
	// At is the moment on the clock that all journals of a run share: the one of a simulation, or of the machine.
	At   time.Time `json:"at"`
	Node string    `json:"node"` // one life of a process that it tells of, or the injector of faults, or the database
	Kind Kind      `json:"kind"`

	Op  string `json:"op,omitempty"` // joins the call and the return of one operation; unique in a run
	ID  int64  `json:"id,omitempty"`
	Tag string `json:"tag,omitempty"`
	Key string `json:"key,omitempty"`
	// Body is the body itself where it is short, else a hash of it. All journals of a run do the same.
	Body string `json:"body,omitempty"`

	Version    int64  `json:"version,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	CrashCount int    `json:"crash_count,omitempty"`
	Status     string `json:"status,omitempty"` // as row.Status says it: "pending", "executing", …
	Executor   string `json:"executor,omitempty"`

	Due      time.Time `json:"due,omitzero"`      // by the database's clock
	Expected time.Time `json:"expected,omitzero"` // by the database's clock
	// Clock is the database's time at At, known without delaytask: "early" is judged by it. Zero: At is good enough,
	// because both clocks are one.
	Clock time.Time `json:"clock,omitzero"`

	Error  Class  `json:"error,omitempty"`
	Detail string `json:"detail,omitempty"` // for people, but where a kind says otherwise
}

// Class says in a word how an operation or a processor ended. OK is the empty one.
type Class string

const (
	OK          Class = ""
	Unknown     Class = "unknown"      // the outcome is not known: it may have happened, and may yet happen
	Refused     Class = "refused"      // nothing happened, for a reason that no other class names
	LeaseLost   Class = "lease_lost"   // somebody else holds the task, or it has ended
	Duplicate   Class = "duplicate"    // an unfinished task carries the key: ID
	NotFound    Class = "not_found"    // there is no such task
	WrongStatus Class = "wrong_status" // its status forbids what was asked for
	Failed      Class = "failed"       // an attempt ended with an error, or its time was up
	Permanent   Class = "permanent"    // with one that must not be tried again
	Panicked    Class = "panicked"     // with a panic
	Snoozed     Class = "snoozed"      // it asks to run again later
	HandedOver  Class = "handed_over"  // the holder of the token ends it
	Released    Class = "released"     // the holder of the token gives it back
	Interrupted Class = "interrupted"  // a graceful stop ended it
	Cancelled   Class = "cancelled"    // a cancel ended it
)

package delaytask

import (
	"fmt"
	"time"
)

// EventKind says what has become of a task.
type EventKind string

// The kinds of events.
const (
	EventSaved     EventKind = "saved"     // stored, but not inside a caller's transaction
	EventStarted   EventKind = "started"   // an attempt was handed to its processor or to the caller of a pop
	EventRetried   EventKind = "retried"   // an attempt failed and another one follows
	EventCompleted EventKind = "completed" // for good
	EventFailed    EventKind = "failed"    // for good
	EventRescued   EventKind = "rescued"   // its executor was gone; it is pending again
	EventCancelled EventKind = "cancelled" // for good
)

// Ends reports whether no attempt follows.
func (k EventKind) Ends() bool { return k == EventCompleted || k == EventFailed || k == EventCancelled }

// Event is what one process has stored about a task.
type Event struct {
	Kind    EventKind
	ID      int64
	Tag     string
	Key     string    // "" when it has none
	Attempt int       // the attempt that started or ended; 0 before the first one
	Time    time.Time // on the database's clock; when the row was stored
	Err     error     // of an attempt that failed, nil otherwise
}

// SubscribeConfig says which events a subscription receives.
type SubscribeConfig struct {
	Tags   []string    // default: all
	Kinds  []EventKind // default: all
	Buffer int         // events that wait to be received, 1 to 1,000,000; default 1,024
}

const (
	defaultEvents = 1024
	mostEvents    = 1_000_000
)

// Checked returns the config with its defaults. It returns [ErrInvalidTag], and [ErrInvalidOption] for a kind that does
// not exist or a buffer out of its range.
func (c SubscribeConfig) Checked() (SubscribeConfig, error) {
	for _, tag := range c.Tags {
		if !ValidTag(tag) {
			return c, fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
		}
	}
	for _, kind := range c.Kinds {
		switch kind {
		case EventSaved, EventStarted, EventRetried, EventCompleted, EventFailed, EventRescued, EventCancelled:
		default:
			return c, fmt.Errorf("%w: there is no kind of event %.40q", ErrInvalidOption, kind)
		}
	}
	if c.Buffer == 0 {
		c.Buffer = defaultEvents
	}
	if c.Buffer < 0 || c.Buffer > mostEvents {
		return c, fmt.Errorf("%w: the buffer is %d, want 1 to %d", ErrInvalidOption, c.Buffer, mostEvents)
	}
	return c, nil
}

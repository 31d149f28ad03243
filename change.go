package delaytask

import (
	"fmt"
	"time"
)

// ChangeOption is a setting of Cancel, Reschedule and SetBody.
type ChangeOption func(*Change) error

// Change holds the options of a Cancel, a Reschedule or a SetBody.
type Change struct {
	OnlyPending bool
	Version     *int64 // that the task must have; nil: any

	At      time.Time // UTC; zero: not asked for
	Body    any       // where HasBody says that it was asked for
	HasBody bool
}

// OnlyPending makes Cancel refuse a task that is executing, with [ErrNotPending]. Reschedule always does.
func OnlyPending() ChangeOption {
	return func(c *Change) error {
		c.OnlyPending = true
		return nil
	}
}

// To makes Reschedule move the task to a time instead of a delay; the delay must be 0 then. A time in the past means
// now. It returns [ErrInvalidTime] and [ErrDelayTooLong] as [WithTime] does, and [ErrInvalidOption] from Cancel.
func To(t time.Time) ChangeOption {
	return func(c *Change) error {
		c.At = t.UTC()
		return checkTime(t)
	}
}

// Body makes Reschedule replace the task's body as well, by what SaveDelayTask would store for the value; nil empties
// it. It returns [ErrInvalidBody] and [ErrBodyTooLarge] as SaveDelayTask does, and [ErrInvalidOption] from Cancel.
// SetBody replaces the body alone.
func Body(body any) ChangeOption {
	return func(c *Change) error {
		c.Body, c.HasBody = body, true
		return nil
	}
}

// IfVersion makes a change conditional: it is refused with [ErrVersionChanged] when the task has changed since it had
// the version, which is TaskRow.Version of a task that was read. So an edit does not undo one that it has not seen. It
// returns [ErrInvalidOption] for a negative version.
func IfVersion(version int64) ChangeOption {
	return func(c *Change) error {
		if version < 0 {
			return fmt.Errorf("%w: version %d: want TaskRow.Version, which is not negative", ErrInvalidOption, version)
		}
		c.Version = &version
		return nil
	}
}

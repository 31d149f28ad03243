package processor

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

	at      time.Time
	body    any
	hasBody bool
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
		c.at = t.UTC()
		return checkTime(t)
	}
}

// Body makes Reschedule replace the task's body as well, by what SaveDelayTask would store for the value; nil empties
// it. It returns [ErrInvalidBody] and [ErrBodyTooLarge] as SaveDelayTask does, and [ErrInvalidOption] from Cancel.
// SetBody replaces the body alone.
func Body(body any) ChangeOption {
	return func(c *Change) error {
		c.body, c.hasBody = body, true
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

// NewCancel checks the options of a Cancel. It returns [ErrInvalidOption] for a nil option and for what Cancel does not
// take, or what the option says.
func NewCancel(opts ...ChangeOption) (Change, error) {
	c, err := newChange(opts)
	switch {
	case err != nil:
		return c, err
	case !c.at.IsZero():
		return c, fmt.Errorf("%w: Cancel takes no time", ErrInvalidOption)
	case c.hasBody:
		return c, fmt.Errorf("%w: Cancel takes no body", ErrInvalidOption)
	}
	return c, nil
}

// Move is what a Reschedule asks for.
type Move struct {
	Delay time.Duration // whole milliseconds; 0 when At is set
	At    time.Time     // UTC; zero: now + Delay
	Body  []byte        // nil: the body is kept

	Version *int64 // that the task must have; nil: any
}

// NewReschedule checks the arguments of a Reschedule by the rules of a save. It returns [ErrInvalidDelay],
// [ErrDelayTooLong], [ErrInvalidBody], [ErrBodyTooLarge], [ErrInvalidOption] for a nil option or a delay besides a
// time, or what the option says.
func NewReschedule(delay time.Duration, limits Limits, opts ...ChangeOption) (Move, error) {
	c, err := newChange(opts)
	if err != nil {
		return Move{}, err
	}
	var at []Option
	if !c.at.IsZero() {
		at = append(at, WithTime(c.at))
	}
	save, err := NewSave("reschedule", c.body, delay, limits, at...)
	if err != nil {
		return Move{}, err
	}
	m := Move{Delay: save.Delay, At: save.At, Version: c.Version}
	if c.hasBody {
		m.Body = save.Body
	}
	return m, nil
}

// Edit is what a SetBody asks for.
type Edit struct {
	Body    []byte
	Version *int64 // that the task must have; nil: any
}

// NewSetBody checks the arguments of a SetBody. It returns [ErrInvalidBody], [ErrBodyTooLarge], [ErrInvalidOption] for
// a nil option and for what SetBody does not take, or what the option says.
func NewSetBody(body any, limits Limits, opts ...ChangeOption) (Edit, error) {
	c, err := newChange(opts)
	switch {
	case err != nil:
		return Edit{}, err
	case !c.at.IsZero():
		return Edit{}, fmt.Errorf("%w: SetBody takes no time; Reschedule takes both", ErrInvalidOption)
	case c.hasBody:
		return Edit{}, fmt.Errorf("%w: SetBody has its body already", ErrInvalidOption)
	}
	save, err := NewSave("body", body, 0, limits)
	return Edit{Body: save.Body, Version: c.Version}, err
}

func newChange(opts []ChangeOption) (c Change, err error) {
	for _, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("%w: it is nil", ErrInvalidOption)
		}
		if err := opt(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

package request

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
)

// NewCancel checks the options of a Cancel. It returns [delaytask.ErrInvalidOption] for a nil option and for what
// Cancel does not take, or what the option says.
func NewCancel(opts ...delaytask.ChangeOption) (delaytask.Change, error) {
	c, err := newChange(opts)
	switch {
	case err != nil:
		return c, err
	case !c.At.IsZero():
		return c, fmt.Errorf("%w: Cancel takes no time", delaytask.ErrInvalidOption)
	case c.HasBody:
		return c, fmt.Errorf("%w: Cancel takes no body", delaytask.ErrInvalidOption)
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

// NewReschedule checks the arguments of a Reschedule by the rules of a save. It returns [delaytask.ErrInvalidDelay],
// [delaytask.ErrDelayTooLong], [delaytask.ErrInvalidBody], [delaytask.ErrBodyTooLarge], [delaytask.ErrInvalidOption]
// for a nil option or a delay besides a time, or what the option says.
func NewReschedule(delay time.Duration, limits Limits, opts ...delaytask.ChangeOption) (Move, error) {
	c, err := newChange(opts)
	if err != nil {
		return Move{}, err
	}
	var at []delaytask.Option
	if !c.At.IsZero() {
		at = append(at, delaytask.WithTime(c.At))
	}
	save, err := NewSave("reschedule", c.Body, delay, limits, at...)
	if err != nil {
		return Move{}, err
	}
	m := Move{Delay: save.Delay, At: save.At, Version: c.Version}
	if c.HasBody {
		m.Body = save.Body
	}
	return m, nil
}

// Edit is what a SetBody asks for.
type Edit struct {
	Body    []byte
	Version *int64 // that the task must have; nil: any
}

// NewSetBody checks the arguments of a SetBody. It returns [delaytask.ErrInvalidBody], [delaytask.ErrBodyTooLarge],
// [delaytask.ErrInvalidOption] for a nil option and for what SetBody does not take, or what the option says.
func NewSetBody(body any, limits Limits, opts ...delaytask.ChangeOption) (Edit, error) {
	c, err := newChange(opts)
	switch {
	case err != nil:
		return Edit{}, err
	case !c.At.IsZero():
		return Edit{}, fmt.Errorf("%w: SetBody takes no time; Reschedule takes both", delaytask.ErrInvalidOption)
	case c.HasBody:
		return Edit{}, fmt.Errorf("%w: SetBody has its body already", delaytask.ErrInvalidOption)
	}
	save, err := NewSave("body", body, 0, limits)
	return Edit{Body: save.Body, Version: c.Version}, err
}

func newChange(opts []delaytask.ChangeOption) (c delaytask.Change, err error) {
	err = apply(&c, opts)
	return c, err
}

// NewPause returns what the options of a pause say. It returns [delaytask.ErrInvalidOption] for a nil option.
func NewPause(opts ...delaytask.PauseOption) (p delaytask.Pause, err error) {
	err = apply(&p, opts)
	return p, err
}

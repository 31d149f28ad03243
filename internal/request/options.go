package request

import (
	"fmt"

	"github.com/delaytask/delaytask"
)

// apply puts options into what they set. It returns [delaytask.ErrInvalidOption] for a nil option, or what an option
// says.
func apply[T any, O ~func(*T) error](to *T, opts []O) error {
	for _, opt := range opts {
		if opt == nil {
			return fmt.Errorf("%w: it is nil", delaytask.ErrInvalidOption)
		}
		if err := opt(to); err != nil {
			return err
		}
	}
	return nil
}

// NewPause returns what the options of a pause say. It returns [delaytask.ErrInvalidOption] for a nil option.
func NewPause(opts ...delaytask.PauseOption) (p delaytask.Pause, err error) {
	err = apply(&p, opts)
	return p, err
}

func newChange(opts []delaytask.ChangeOption) (c delaytask.Change, err error) {
	err = apply(&c, opts)
	return c, err
}

package processor

import (
	"fmt"
	"time"
)

// PopOption is a setting of one Pop.
type PopOption func(*Pop) error

// Pop is what the options of a Pop add up to.
type Pop struct {
	Tags  []string
	Max   int
	Wait  time.Duration
	Waits bool          // Wait is set; otherwise the wait has no end
	TTR   time.Duration // 0: each task's own
}

// mostPopped bounds what one Pop hands out.
const mostPopped = 1000

// PopMax hands out up to n tasks, 1 to 1,000; more is the same as 1,000. Default: 1. It returns [ErrInvalidOption]
// below 1.
func PopMax(n int) PopOption {
	return func(p *Pop) error {
		if n < 1 {
			return fmt.Errorf("%w: a pop of %d tasks", ErrInvalidOption, n)
		}
		p.Max = min(n, mostPopped)
		return nil
	}
}

// PopWait returns without a task after d: at once when d is 0. Without this option a Pop waits until its context ends.
// It returns [ErrInvalidOption] when d is negative.
func PopWait(d time.Duration) PopOption {
	return func(p *Pop) error {
		if d < 0 {
			return fmt.Errorf("%w: a wait of %v", ErrInvalidOption, d)
		}
		p.Wait, p.Waits = d, true
		return nil
	}
}

// PopTTR is how long the lease lasts, whatever the task's own TTR. It returns [ErrInvalidTTR].
func PopTTR(d time.Duration) PopOption {
	return func(p *Pop) (err error) {
		p.TTR, err = checkTTR(d)
		return err
	}
}

// mostTags bounds the tags of one Pop: whoever serves it looks after each of them from then on.
const mostTags = 100

// PopAlso takes tasks of further tags as well, of up to 100 in all. It returns [ErrInvalidTag], and [ErrInvalidOption]
// for more.
func PopAlso(tags ...string) PopOption {
	return func(p *Pop) error {
		for _, tag := range tags {
			if !ValidTag(tag) {
				return fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
			}
		}
		p.Tags = append(p.Tags, tags...)
		return nil
	}
}

// NewPop checks the arguments of a Pop. It returns [ErrInvalidTag], [ErrInvalidOption] for a nil option, or what the
// option says.
func NewPop(tag string, opts ...PopOption) (Pop, error) {
	p := Pop{Max: 1}
	for _, opt := range append([]PopOption{PopAlso(tag)}, opts...) {
		if opt == nil {
			return p, fmt.Errorf("%w: it is nil", ErrInvalidOption)
		}
		if err := opt(&p); err != nil {
			return p, err
		}
	}
	if len(p.Tags) > mostTags {
		return p, fmt.Errorf("%w: a pop of %d tags, want at most %d", ErrInvalidOption, len(p.Tags), mostTags)
	}
	return p, nil
}

// NewTouch checks the length of a touched lease: at least 1 s and at most 24 h, whatever is asked for. It returns
// [ErrInvalidTTR] when ttr is not positive.
func NewTouch(ttr time.Duration) (time.Duration, error) {
	if ttr <= 0 {
		return 0, fmt.Errorf("%w: a touch of %v", ErrInvalidTTR, ttr)
	}
	return checkTTR(min(ttr, maxTTR))
}

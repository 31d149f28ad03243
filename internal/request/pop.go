package request

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
)

// mostTags bounds the tags of one Pop. The process that serves it looks for tasks of each of them from then on.
const mostTags = 100

// NewPop checks the arguments of a Pop. It returns [delaytask.ErrInvalidTag], [delaytask.ErrInvalidOption] for a nil
// option, or what the option says.
func NewPop(tag string, opts ...delaytask.PopOption) (delaytask.Pop, error) {
	p := delaytask.Pop{Max: 1}
	if err := apply(&p, append([]delaytask.PopOption{delaytask.PopAlso(tag)}, opts...)); err != nil {
		return p, err
	}
	if len(p.Tags) > mostTags {
		return p, fmt.Errorf("%w: a pop of %d tags, want at most %d", delaytask.ErrInvalidOption, len(p.Tags), mostTags)
	}
	return p, nil
}

// NewTouch checks the length of a touched lease: at least 1 s and at most 24 h, whatever is asked for. It returns
// [delaytask.ErrInvalidTTR] when ttr is not positive.
func NewTouch(ttr time.Duration) (time.Duration, error) {
	if ttr <= 0 {
		return 0, fmt.Errorf("%w: a touch of %v", delaytask.ErrInvalidTTR, ttr)
	}
	var p delaytask.Pop
	err := delaytask.PopTTR(min(ttr, delaytask.MaxTTR))(&p)
	return p.TTR, err
}

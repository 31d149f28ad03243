package operate

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/request"
)

// PauseTag stops all nodes from starting tasks of the tag, and reports whether the tag was paused before: then the
// audit log has that nothing was changed. It takes the verb operate. It returns [delaytask.ErrInvalidTag].
func (o *Operator) PauseTag(
	ctx context.Context, by By, tag string, opts ...delaytask.PauseOption,
) (was bool, err error) {
	pause, err := request.NewPause(opts...)
	if err != nil {
		return false, err
	}
	return o.setTag(ctx, by, act{action: audit.PauseTag, tag: tag, detail: pause.Reason}, true,
		func(ctx context.Context, tag string) error { return o.Core.Pause(ctx, tag, opts...) })
}

// ResumeTag ends a pause. It takes, reports and returns what PauseTag does.
func (o *Operator) ResumeTag(ctx context.Context, by By, tag string) (was bool, err error) {
	return o.setTag(ctx, by, act{action: audit.ResumeTag, tag: tag}, false, o.Core.Resume)
}

func (o *Operator) setTag(
	ctx context.Context, by By, a act, paused bool, set func(context.Context, string) error,
) (was bool, err error) {
	a.needs = toOperate
	a.find = func(ctx context.Context) (target, error) {
		if !delaytask.ValidTag(a.tag) {
			return target{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, a.tag)
		}
		tags, _, err := o.store.Tags(ctx)
		for _, t := range tags {
			was = was || t.Tag == a.tag && t.Paused
		}
		return target{tag: a.tag}, err
	}
	a.do = func(ctx context.Context, _ target) (int64, error) {
		err := set(ctx, a.tag)
		if err == nil && was == paused {
			err = audit.ErrUnchanged
		}
		return 0, err
	}
	err = o.do(ctx, by, a)
	return was, err
}

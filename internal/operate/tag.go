package operate

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/request"
)

// TagMet is what a pause or a resume has met.
type TagMet struct {
	Paused bool // before; the audit log has that a pause of a paused tag has changed nothing
	Unseen bool // a pause: no live process serves the tag, and no task and no schedule has it
}

// Unseen tells people of a pause that it may have a misspelt tag.
const Unseen = "no live process serves the tag, and no task and no schedule has it: is it misspelt?"

// PauseTag stops all nodes from starting tasks of the tag, known or not. It takes the verb operate. It returns
// [delaytask.ErrInvalidTag].
func (o *Operator) PauseTag(
	ctx context.Context, by By, tag string, opts ...delaytask.PauseOption,
) (met TagMet, err error) {
	pause, err := request.NewPause(opts...)
	if err != nil {
		return met, err
	}
	a := act{action: audit.PauseTag, tag: tag, detail: pause.Reason}
	err = o.setTag(ctx, by, a, &met, func(ctx context.Context, tag string) error {
		if !met.Paused {
			seen, err := o.Core.Seen(ctx, tag)
			met.Unseen = err == nil && !seen // a read that fails stops no pause
		}
		return o.Core.Pause(ctx, tag, opts...)
	}, true)
	return met, err
}

// ResumeTag ends a pause. It takes and returns what PauseTag does.
func (o *Operator) ResumeTag(ctx context.Context, by By, tag string) (met TagMet, err error) {
	err = o.setTag(ctx, by, act{action: audit.ResumeTag, tag: tag}, &met, o.Core.Resume, false)
	return met, err
}

func (o *Operator) setTag(
	ctx context.Context, by By, a act, met *TagMet, set func(context.Context, string) error, paused bool,
) error {
	a.needs = toOperate
	a.find = func(ctx context.Context) (target, error) {
		if !delaytask.ValidTag(a.tag) {
			return target{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, a.tag)
		}
		tags, _, err := o.store.Tags(ctx)
		for _, t := range tags {
			met.Paused = met.Paused || t.Tag == a.tag && t.Paused
		}
		return target{tag: a.tag}, err
	}
	a.do = func(ctx context.Context, _ target) (int64, error) {
		err := set(ctx, a.tag)
		if err == nil && met.Paused == paused {
			err = audit.ErrUnchanged
		}
		return 0, err
	}
	return o.do(ctx, by, a)
}

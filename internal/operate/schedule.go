package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/schedules/plan"
)

// toSchedule are the rights to define and delete a schedule of the tag. Its body is checked as the body of a save.
func toSchedule(tag string) []access.Verb {
	if tag == access.HTTPTag {
		return []access.Verb{access.Schedule, access.SaveHTTP}
	}
	return []access.Verb{access.Schedule}
}

// MaySchedule reports whether the caller may define and delete schedules of the tag.
func (by By) MaySchedule(tag string) bool { return by.lacks(toSchedule(tag), target{tag: tag}) == nil }

func toOperate(string) []access.Verb { return []access.Verb{access.Operate} }

// SaveSchedule stores a schedule. It takes the verb schedule, and for the tag http save_http, too: for the tag that the
// schedule gets, and for the tag of the one that has the name.
//
// It returns [delaytask.ErrRedacted] as SetBody does, the error of Config.Check, and what
// [scheduler.Scheduler.SaveSchedule] returns.
func (o *Operator) SaveSchedule(
	ctx context.Context, by By, name string, when delaytask.Spec, tag string, body []byte, opts ...delaytask.Option,
) (s delaytask.Schedule, err error) {
	switch {
	case redact.Holds(body):
		return s, delaytask.ErrRedacted
	case !delaytask.ValidScheduleName(name):
		return s, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidScheduleName, name)
	}
	err = o.do(ctx, by, act{
		action: audit.SaveSchedule, needs: toSchedule, tag: tag, detail: audit.SpecText(when),
		find:  func(context.Context) (target, error) { return target{name: name, tag: tag}, nil },
		check: func(target) error { return o.checkBody(tag, body) },
		do: func(ctx context.Context, _ target) (_ int64, err error) {
			ctx = plan.WithGuard(ctx, func(old string) error {
				if by.MaySchedule(old) {
					return nil
				}
				return errNameTaken
			})
			s, err = o.Core.SaveSchedule(ctx, name, when, tag, body, opts...)
			return 0, err
		},
	})
	return s, err
}

var errNameTaken = fmt.Errorf("%w: the name belongs to a schedule of a tag that this token may not schedule; choose "+
	"another name", access.ErrForbidden)

// DeleteSchedule deletes a schedule with its history. It takes the verb schedule, and for the tag http save_http, too.
func (o *Operator) DeleteSchedule(ctx context.Context, by By, name string) error {
	return o.onSchedule(ctx, by, name, act{action: audit.DeleteSchedule, needs: toSchedule},
		func(ctx context.Context) error { return o.Core.DeleteSchedule(ctx, name) })
}

// PauseSchedule stops a schedule until it is resumed. It and all that follow take the verb operate.
func (o *Operator) PauseSchedule(ctx context.Context, by By, name string, opts ...delaytask.PauseOption) error {
	pause, err := request.NewPause(opts...)
	if err != nil {
		return err
	}
	return o.onSchedule(ctx, by, name, act{action: audit.PauseSchedule, needs: toOperate, detail: pause.Reason},
		func(ctx context.Context) error { return o.Core.PauseSchedule(ctx, name, opts...) })
}

// ResumeSchedule ends a pause.
func (o *Operator) ResumeSchedule(ctx context.Context, by By, name string) error {
	return o.onSchedule(ctx, by, name, act{action: audit.ResumeSchedule, needs: toOperate},
		func(ctx context.Context) error { return o.Core.ResumeSchedule(ctx, name) })
}

// ResetSchedule sets a schedule to its first tick that is to come.
func (o *Operator) ResetSchedule(ctx context.Context, by By, name string) error {
	return o.onSchedule(ctx, by, name, act{action: audit.ResetSchedule, needs: toOperate},
		func(ctx context.Context) error { return o.Core.ResetSchedule(ctx, name) })
}

// SkipTick leaves out the next tick, and returns it.
func (o *Operator) SkipTick(ctx context.Context, by By, name string) (tick time.Time, err error) {
	err = o.onSchedule(ctx, by, name, act{action: audit.SkipTick, needs: toOperate},
		func(ctx context.Context) (err error) {
			tick, err = o.Core.SkipTick(ctx, name)
			return err
		})
	return tick, err
}

// TriggerSchedule runs a schedule once, now, and returns the id of the task. beside says that it may be while another
// run executes.
func (o *Operator) TriggerSchedule(ctx context.Context, by By, name string, beside bool) (id int64, err error) {
	a := act{action: audit.RunSchedule, needs: toOperate}
	if beside {
		a.detail = "beside"
	}
	err = o.onSchedule(ctx, by, name, a, func(ctx context.Context) (err error) {
		id, err = o.Core.TriggerSchedule(ctx, name, beside)
		return err
	})
	return id, err
}

// Backfill runs the ticks between two moments, both included, and returns the name of the schedule of these runs.
func (o *Operator) Backfill(
	ctx context.Context, by By, name string, from, to time.Time, atOnce int,
) (child string, err error) {
	a := act{action: audit.BackfillSchedule, needs: toOperate, detail: audit.RangeText(from, to)}
	err = o.onSchedule(ctx, by, name, a, func(ctx context.Context) (err error) {
		child, err = o.Core.Backfill(ctx, name, from, to, atOnce)
		return err
	})
	return child, err
}

// onSchedule does one thing with one schedule.
func (o *Operator) onSchedule(
	ctx context.Context, by By, name string, a act, do func(context.Context) error,
) error {
	a.find = func(ctx context.Context) (target, error) {
		s, err := o.schedule(ctx, name)
		return target{name: name, tag: s.Tag, hidden: hiddenSchedule(name)}, err
	}
	a.do = func(ctx context.Context, t target) (int64, error) {
		return 0, do(plan.WithGuard(ctx, func(tag string) error { // it may have got another tag
			t.tag = tag
			return by.lacks(a.needs(tag), t)
		}))
	}
	return o.do(ctx, by, a)
}

func (o *Operator) schedule(ctx context.Context, name string) (delaytask.Schedule, error) {
	if !delaytask.ValidTag(name) { // names have the characters of tags
		return delaytask.Schedule{}, hiddenSchedule(name)
	}
	return o.Core.GetSchedule(ctx, name)
}

func hiddenSchedule(name string) error {
	return fmt.Errorf("get schedule %.140s: %w", name, delaytask.ErrScheduleNotFound)
}

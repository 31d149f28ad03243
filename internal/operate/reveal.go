package operate

import (
	"context"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
)

func toReveal(string) []access.Verb { return []access.Verb{access.Read, access.Bodies} }

// RevealBody returns a task with its body, for someone who has asked to see it, and whether that has an entry in the
// audit log. It takes the verbs read and bodies.
func (o *Operator) RevealBody(
	ctx context.Context, by By, ref delaytask.Ref,
) (task delaytask.TaskRow, recorded bool, err error) {
	recorded, err = o.reveal(ctx, by, act{
		action: audit.RevealBody, needs: toReveal, find: func(ctx context.Context) (t target, err error) {
			task, err = o.Core.Get(ctx, ref)
			return taskTarget(ref, task.ID, task.Tag), err
		},
	})
	return task, recorded, err
}

// RevealScheduleBody is RevealBody for a schedule.
func (o *Operator) RevealScheduleBody(
	ctx context.Context, by By, name string,
) (s delaytask.Schedule, recorded bool, err error) {
	recorded, err = o.reveal(ctx, by, act{
		action: audit.RevealSchedule, needs: toReveal, find: func(ctx context.Context) (t target, err error) {
			s, err = o.schedule(ctx, name)
			return target{name: name, tag: s.Tag, hidden: hiddenSchedule(name)}, err
		},
	})
	return s, recorded, err
}

// reveal is do for what is read alone. It does not tell what a caller may not see.
func (o *Operator) reveal(ctx context.Context, by By, a act) (is bool, err error) {
	t, err := o.admit(ctx, by, a)
	if err != nil {
		return false, err
	}
	entry, err := o.Audit.Begin(ctx, by.act(a.action, t, ""))
	if err != nil {
		return false, recorded(by, err)
	}
	entry.End(ctx, 0, nil)
	return entry != nil, nil
}

package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/wire"
)

var (
	// ErrAction is returned for an action that there is not.
	ErrAction = errors.New("there is no such bulk change; want cancel or retry")

	// ErrSomeTags is returned to a caller that may not change all tasks that are meant.
	ErrSomeTags = errors.New("you may change tasks of some tags only: name one of them")
)

// Change is a bulk change that its caller may make.
type Change struct {
	Action string           // cancel or retry
	Filter delaytask.Filter // with its Status

	operator *Operator
	by       By
	all      func(context.Context, delaytask.Bulk) (delaytask.BulkResult, error)
}

// Bulk returns what the caller asks for: to cancel or to retry all tasks that match. It takes the verb change. Order,
// After, Limit and Bodies of the filter do not count. It returns [access.ErrForbidden] for the tag of the filter,
// [ErrSomeTags] without one, [ErrAction], and the errors of CancelAll for a wrong filter.
func (o *Operator) Bulk(by By, action string, f delaytask.Filter) (*Change, error) {
	if err := by.Allow(access.Change, f.Tag); err != nil {
		return nil, err
	}
	c := &Change{Action: action, operator: o, by: by}
	var status delaytask.Status
	switch action {
	case "cancel":
		c.all, status = o.Core.CancelAll, delaytask.Pending
	case "retry":
		c.all, status = o.Core.RetryAll, delaytask.Failed
	default:
		return nil, ErrAction
	}
	switch f.Status {
	case "", status:
		f.Status = status
	default:
		return nil, fmt.Errorf("%w: to %s is for %s tasks, and the filter asks for %.20q", delaytask.ErrInvalidOption,
			action, status, f.Status)
	}
	f.Order, f.After, f.Limit, f.Bodies = "", "", 0, false
	if c.Filter = f; !by.May(access.Change, f.Tag) { // without a tag that is the right for all tags
		return nil, ErrSomeTags
	}
	if err := core.CheckFilter(f); err != nil {
		return nil, err
	}
	return c, nil
}

// AsOf returns the moment that bounds a bulk change: the given one, or now by the database's clock if that is earlier
// or none is given. Now is a whole millisecond, so that its text is the moment.
func (o *Operator) AsOf(ctx context.Context, given time.Time) (time.Time, error) {
	now, err := o.store.Now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	asOf := now.Time.Std().Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond)
	if !given.IsZero() && given.Before(asOf) {
		asOf = given
	}
	return asOf, nil
}

// Count counts what the change would change. b has AsOf at most.
func (c *Change) Count(ctx context.Context, b delaytask.Bulk) (delaytask.BulkResult, error) {
	b.Filter, b.DryRun = c.Filter, true
	return c.all(ctx, b)
}

// Start records the change, begins it in the background, and returns the run. ctx bounds the recording alone. Of about
// it takes what was counted, and the moment that bounds the change, which is not zero. A change that fails, and was not
// stopped, is logged.
//
// Start returns [bulk.ErrTooMany], [bulk.ErrClosed], and [delaytask.ErrNotRecorded].
func (c *Change) Start(ctx context.Context, about bulk.About) (bulk.State, error) {
	begin := func() (*audit.Entry, error) { return c.begin(ctx, &about) }
	return c.operator.Core.Bulks().Start(c.about(about), begin,
		func(ctx context.Context, progress func(int)) (int, error) {
			changed, err := c.change(ctx, &about, progress)
			if err != nil && context.Cause(ctx) == nil {
				c.operator.Log.Error("a bulk change failed", "action", c.Action, "tag", c.Filter.Tag, "err", err)
			}
			return changed, err
		})
}

// Run is Start in the foreground. It returns how many tasks it has changed, also beside an error.
func (c *Change) Run(ctx context.Context, about bulk.About, progress func(done int)) (int, error) {
	entry, err := c.begin(ctx, &about)
	if err != nil {
		return 0, err
	}
	return bulk.Record(ctx, entry, c.about(about), progress,
		func(ctx context.Context, progress func(int)) (int, error) { return c.change(ctx, &about, progress) })
}

func (c *Change) about(about bulk.About) bulk.About {
	about.Verb, about.Who, about.Filter = c.Action, c.by.Name(), c.Filter
	return about
}

func (c *Change) begin(ctx context.Context, about *bulk.About) (*audit.Entry, error) {
	act := c.by.act(audit.Action("bulk."+c.Action), target{tag: c.Filter.Tag},
		wire.FilterText(&c.Filter, about.AsOf))
	entry, err := c.operator.Audit.Begin(ctx, act)
	return entry, recorded(c.by, err)
}

func (c *Change) change(ctx context.Context, about *bulk.About, progress func(int)) (int, error) {
	changed, err := c.all(ctx, delaytask.Bulk{Filter: c.Filter, AsOf: about.AsOf, Progress: progress})
	return changed.Tasks, err
}

// run finds a bulk change of any process. One that the caller may not see is unknown.
func (o *Operator) run(ctx context.Context, by By, id string) (bulk.State, error) {
	run, err := o.Core.Bulks().Find(ctx, o.store, id)
	if err == nil && !by.sees(&run) {
		err = bulk.ErrUnknown
	}
	return run, err
}

func (by By) sees(run *bulk.State) bool {
	return by.May(access.Read, run.Filter.Tag) || by.May(access.Change, run.Filter.Tag)
}

// StopRun ends a bulk change after the batch that it is at, and returns it as it was. One that has ended stays as it
// is. It takes the verb change. It returns [bulk.ErrUnknown], [bulk.ErrUntold], and [ErrSomeTags] for a change of tags
// that the caller may not change.
func (o *Operator) StopRun(ctx context.Context, by By, id string) (run bulk.State, err error) {
	err = o.do(ctx, by, act{
		action: audit.StopBulk, needs: toChange,
		find: func(ctx context.Context) (t target, err error) {
			if run, err = o.run(ctx, by, id); err == nil && !by.May(access.Change, run.Filter.Tag) {
				err = ErrSomeTags
			}
			return target{name: run.ID, tag: run.Filter.Tag}, err
		},
		do: func(ctx context.Context, _ target) (int64, error) {
			return 0, o.Core.Bulks().StopAny(ctx, o.store, &run)
		},
	})
	return run, err
}

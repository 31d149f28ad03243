// Package bulkrun starts changes of many tasks in the background, for callers of the dashboard and of the HTTP API. It
// checks what they ask for, and tells whose runs they see.
package bulkrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/audit"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/bulk"
	"github.com/delaytask/delaytask/internal/server/access"
)

var (
	// ErrAction is returned for an action that there is not.
	ErrAction = errors.New("there is no such bulk change; want cancel or retry")

	// ErrForbidden is returned to a caller that may not change all tasks that are meant.
	ErrForbidden = errors.New("you may change tasks of some tags only: name one of them")
)

// Change is a bulk change that its caller may make.
type Change struct {
	Action string           // cancel or retry
	Filter delaytask.Filter // with its Status

	scheduler *delaytask.Scheduler
	all       func(context.Context, delaytask.Bulk) (delaytask.BulkResult, error)
}

// New returns what the caller asks for: to cancel or to retry all tasks that match. Order, After, Limit and Bodies of
// the filter do not count. It returns [ErrAction], [ErrForbidden], and the errors of CancelAll for a wrong filter.
func New(s *delaytask.Scheduler, by access.Caller, action string, f delaytask.Filter) (*Change, error) {
	c := &Change{Action: action, scheduler: s}
	var status delaytask.Status
	switch action {
	case "cancel":
		c.all, status = s.CancelAll, delaytask.Pending
	case "retry":
		c.all, status = s.RetryAll, delaytask.Failed
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
		return nil, ErrForbidden
	}
	if err := bridge.CheckFilter(f); err != nil {
		return nil, err
	}
	return c, nil
}

// Count counts what the change would change. b has AsOf at most.
func (c *Change) Count(ctx context.Context, b delaytask.Bulk) (delaytask.BulkResult, error) {
	b.Filter, b.DryRun = c.Filter, true
	return c.all(ctx, b)
}

// Act is what the audit log calls the change.
func (c *Change) Act() audit.Action { return audit.Action("bulk." + c.Action) }

// Start records the change, begins it in the background, and returns the run. ctx bounds the recording alone. Of about
// it takes who asks, what was counted, and the moment that bounds the change, which is not zero. A change that fails,
// and was not stopped, is logged.
//
// Start returns [bulk.ErrTooMany], [bulk.ErrClosed], and the errors of [audit.Log.Begin].
func (c *Change) Start(
	ctx context.Context, via audit.Via, acts *audit.Log, log *slog.Logger, about bulk.About,
) (bulk.State, error) {
	about.Verb, about.Filter = c.Action, c.Filter
	act := audit.Act{
		Who: about.Who, Via: via, Action: c.Act(), Tag: c.Filter.Tag,
		Detail: audit.FilterText(&c.Filter, about.AsOf),
	}
	begin := func() (*audit.Entry, error) { return acts.Begin(ctx, act) }
	return bridge.Bulks(c.scheduler).Start(about, begin, func(ctx context.Context, progress func(int)) (int, error) {
		changed, err := c.all(ctx, delaytask.Bulk{Filter: c.Filter, AsOf: about.AsOf, Progress: progress})
		if err != nil && context.Cause(ctx) == nil {
			log.Error("a bulk change failed", "action", c.Action, "tag", c.Filter.Tag, "err", err)
		}
		return changed.Tasks, err
	})
}

// Sees reports whether the caller may know of the run: it may see the tasks, or change them.
func Sees(by access.Caller, run *bulk.State) bool {
	return by.May(access.Read, run.Filter.Tag) || by.May(access.Change, run.Filter.Tag)
}

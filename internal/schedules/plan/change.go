package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
)

// mostTries bounds how often a change is tried whose schedule others change at the same time.
const mostTries = 10

// Change has change decide about one schedule, and stores what it returns. Where others were quicker, it is asked again
// with what is stored now. An error of change is returned as it is.
func (p *Planner) Change(
	ctx context.Context, name string, change func(decide.State) (row.Decision, error),
) (row.Schedule, error) {
	tag := ""
	for n := range mostTries {
		if n > 0 && !lifecycle.Sleep(ctx, lifecycle.Backoff(n-1)) {
			return row.Schedule{}, ctx.Err()
		}
		st, err := p.State(ctx, name)
		if err != nil {
			return row.Schedule{}, err
		}
		if err := p.addHistory(ctx, &st); err != nil {
			return row.Schedule{}, err
		}
		if one := []decide.State{st}; n > 0 { // an old run may be in the way
			if err := p.addForeign(ctx, one, tag); err != nil {
				return row.Schedule{}, err
			}
			st = one[0]
		}
		d, err := change(st)
		if err != nil {
			return row.Schedule{}, err
		}
		tag = d.Schedule.Tag
		done, err := p.try(ctx, d)
		if done || err != nil {
			d.Schedule.Version++ // it was the version that the decision was made for
			return d.Schedule, err
		}
	}
	return row.Schedule{}, delaytask.ErrContended
}

// addHistory reads what was decided before a run that an operation may take back, and what was skipped ahead.
func (p *Planner) addHistory(ctx context.Context, st *decide.State) (err error) {
	limit := fewRuns
	if s := &st.Schedule; s.Last.Add(s.Jitter) > st.Now {
		limit = decide.MostAhead
	} else if !slices.ContainsFunc(st.Open, func(o decide.Open) bool { return o.Task.Status == row.Pending }) {
		return nil
	}
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	st.History, err = p.Store.Runs(ctx, st.Schedule.ID, 0, limit)
	return err
}

// try stores a decision and reports whether it applied. A decision whose reply was lost is tried again at the version
// that it was made for, so it applies once.
func (p *Planner) try(ctx context.Context, d row.Decision) (done bool, err error) {
	call, cancel := p.CallIn(ctx)
	defer cancel()
	done, err = p.Store.Decide(call, []row.Decision{d})
	switch {
	case done:
		p.stored([]row.Decision{d})
	case err != nil && row.ClassOf(err) == row.ClassUnknown:
		return p.applied(ctx, &d)
	case row.IsOneOf(err, row.ClassDuplicate, row.ClassLocked, row.ClassNotApplied):
		return false, nil
	}
	return done, err
}

// applied finds out whether a decision is stored whose reply was lost.
func (p *Planner) applied(ctx context.Context, d *row.Decision) (bool, error) {
	st, err := p.State(ctx, d.Schedule.Name)
	switch {
	case errors.Is(err, delaytask.ErrScheduleNotFound):
		return d.Write == row.WriteDelete, nil
	case err != nil:
		return false, err
	}
	version := d.Schedule.Version + 1
	if d.Write == row.WriteNew {
		version = 0
	}
	return st.Schedule.ID == d.Schedule.ID && st.Schedule.Version >= version, nil
}

// Get returns a schedule, also one that this program cannot decide about. It returns [delaytask.ErrScheduleNotFound]
// and [delaytask.ErrBroken].
func (p *Planner) Get(ctx context.Context, name string) (row.Schedule, error) {
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	found, broken, err := p.Store.Schedules(ctx, row.ScheduleFilter{Names: []string{name}, Limit: 1})
	switch {
	case err != nil:
		return row.Schedule{}, err
	case len(broken) > 0:
		return row.Schedule{}, fmt.Errorf("%w: %s", delaytask.ErrBroken, broken[0].Reason)
	case len(found) == 0:
		return row.Schedule{}, delaytask.ErrScheduleNotFound
	}
	return found[0], guarded(ctx, &found[0])
}

// State reads what a decision about one schedule is made of. It returns [delaytask.ErrScheduleNotFound] when no
// schedule has the name, [delaytask.ErrBroken], and [ErrUnreadable].
func (p *Planner) State(ctx context.Context, name string) (decide.State, error) {
	found, err := p.Get(ctx, name)
	if err != nil {
		return decide.State{}, err
	}
	if _, err := p.spec(&found); err != nil {
		return decide.State{}, err
	}
	states, err := p.states(ctx, []row.Schedule{found})
	if err != nil {
		return decide.State{}, err
	}
	return states[0], nil
}

package plan

import (
	"context"
	"errors"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// Save stores a schedule of the name, or gives the one that exists this definition. It returns what is stored then.
// Nothing is written when the definition is stored already. It returns [delaytask.ErrScheduleOwned] for a schedule of
// another owner, [delaytask.ErrScheduleExists] and [delaytask.ErrScheduleChanged] as only says, and a
// [*delaytask.SpecError] when no tick is to come.
func (p *Planner) Save(ctx context.Context, to row.Schedule, sp *spec.Spec, only Only) (row.Schedule, error) {
	to = Define(to, sp)
	if now, ok := p.Now(); ok && sp.Next(now.Std()).IsZero() {
		return row.Schedule{}, &delaytask.SpecError{Reason: "no tick is to come"}
	}
	for {
		stored, err := p.Change(ctx, to.Name, func(st decide.State) (row.Decision, error) {
			switch s := &st.Schedule; {
			case s.Owner != to.Owner:
				return row.Decision{}, delaytask.ErrScheduleOwned
			case only.New:
				return row.Decision{}, delaytask.ErrScheduleExists
			case s.Hash == to.Hash && s.State != row.ScheduleEnded && !s.State.Retired():
				return row.Decision{}, errSame
			case only.Version != nil && (*only.Version < s.Defined || *only.Version > s.Version):
				return row.Decision{}, delaytask.ErrScheduleChanged
			}
			return decide.Edit(st, to, sp)
		})
		switch {
		case errors.Is(err, errSame):
			st, err := p.State(ctx, to.Name)
			return st.Schedule, err
		case !errors.Is(err, delaytask.ErrScheduleNotFound):
			return stored, err
		case only.Version != nil:
			return row.Schedule{}, delaytask.ErrScheduleChanged
		}
		d, err := p.create(ctx, to, sp)
		if !errors.Is(err, errTaken) {
			return d.Schedule, err
		}
	}
}

// Only says what a save may replace. The zero value allows all.
type Only struct {
	New     bool   // nothing
	Version *int64 // a definition that was not changed since the schedule had the version
}

// Define completes a definition by its spec.
func Define(s row.Schedule, sp *spec.Spec) row.Schedule {
	s.Spec, s.Grammar = sp.String(), spec.Grammar
	s.Hash = decide.Hash(&s)
	return s
}

var (
	errSame  = errors.New("the definition is stored already")
	errTaken = errors.New("another process has stored a schedule of the name")
)

// create stores a schedule for the first time, or returns errTaken.
func (p *Planner) create(ctx context.Context, to row.Schedule, sp *spec.Spec) (row.Decision, error) {
	now, err := p.certain(ctx)
	if err != nil {
		return row.Decision{}, err
	}
	to.ID = p.NextID()
	one := []decide.State{p.state(to, sp, now, nil)}
	one[0].Actor = row.Actor(ctx)
	for n := 0; ; n++ {
		d := decide.New(one[0])
		done, err := p.try(ctx, d)
		switch {
		case done || err != nil:
			return d, err
		case n == mostTries:
			return d, delaytask.ErrContended
		}
		if _, err := p.State(ctx, to.Name); !errors.Is(err, delaytask.ErrScheduleNotFound) {
			return d, errors.Join(errTaken, err)
		}
		// A run of a deleted schedule of the name may be in the way.
		if err := p.addForeign(ctx, one, to.Tag); err != nil {
			return d, err
		}
	}
}

// Delete deletes a schedule, with its history and the backfills of it. A run that waits for its time is cancelled, and
// one that executes goes on.
func (p *Planner) Delete(ctx context.Context, name string) error {
	children, err := p.List(ctx, row.ScheduleFilter{Prefix: name + "/backfill/", Limit: listed})
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := p.delete(ctx, child.Name); err != nil && !errors.Is(err, delaytask.ErrScheduleNotFound) {
			return err
		}
	}
	return p.delete(ctx, name)
}

const listed = 1000

func (p *Planner) delete(ctx context.Context, name string) error {
	_, err := p.Change(ctx, name, func(st decide.State) (row.Decision, error) {
		if st.Schedule.Owner != "" && !st.Schedule.State.Retired() {
			return row.Decision{}, delaytask.ErrScheduleOwned
		}
		return decide.Delete(st)
	})
	return err
}

// Backfill stores a schedule that runs the past ticks of another one, and returns its name.
func (p *Planner) Backfill(ctx context.Context, name string, from, to row.Time, atOnce int) (string, error) {
	parent, err := p.State(ctx, name)
	if err != nil {
		return "", err
	}
	d, err := decide.Backfill(parent, p.NextID(), from, to, atOnce)
	if err != nil {
		return "", err
	}
	for range mostTries {
		done, err := p.try(ctx, d)
		if done || err != nil {
			return d.Schedule.Name, err
		}
	}
	return "", delaytask.ErrContended
}

// List returns the schedules that match, by name. Those that cannot be read are left out, and logged.
func (p *Planner) List(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, error) {
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	found, broken, err := p.Store.Schedules(ctx, f)
	p.unreadable(broken)
	return found, err
}

// Runs returns what became of the ticks of a schedule before the moment, the newest first.
func (p *Planner) Runs(ctx context.Context, name string, before row.Time, limit int) ([]row.ScheduleRun, error) {
	of, err := p.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	return p.Store.Runs(ctx, of.ID, before, limit)
}

// certain returns the database's time, and waits while it is not known.
func (p *Planner) certain(ctx context.Context) (row.Time, error) {
	for n := 0; ; n++ {
		if now, ok := p.Now(); ok {
			return now, nil
		}
		if p.Life.Err() != nil {
			return 0, context.Cause(p.Life)
		}
		if !lifecycle.Sleep(ctx, lifecycle.Backoff(n)) {
			return 0, context.Cause(ctx)
		}
	}
}

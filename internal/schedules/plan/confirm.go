package plan

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
)

// Confirm tells that an attempt of a run that was cancelled has returned here. Nothing of it goes on, so the run that
// replaces it need not wait for the end of its lease.
func (p *Planner) Confirm(ctx context.Context, name string, task int64) {
	st, err := p.State(ctx, name)
	if err != nil {
		p.Failed("reading the schedule of a replaced run", err)
		return
	}
	next, waits := waiting(&st)
	if !waits {
		return
	}
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	before, err := p.Store.Runs(ctx, st.Schedule.ID, 0, fewRuns)
	if err == nil && replacedAlone(before, task) {
		err = p.putForward(ctx, next, st.Now)
	}
	if err != nil {
		p.Failed("putting forward the run of a schedule", err)
	}
}

// TakeBack decides about a run that was claimed here and has not begun, and reports whether it was taken back. Only a
// run that comes late is asked for. It returns an error when that cannot be told now.
func (p *Planner) TakeBack(ctx context.Context, run *row.Row, now row.Time) (taken bool, err error) {
	if !decide.Late(run, now) {
		return false, nil
	}
	for n := range mostTries {
		if n > 0 && !lifecycle.Sleep(ctx, lifecycle.Backoff(n-1)) {
			break
		}
		var st decide.State
		st, err = p.State(ctx, run.TickOf.Schedule)
		switch {
		case errors.Is(err, delaytask.ErrScheduleNotFound), errors.Is(err, ErrUnreadable):
			return false, nil // it was deleted, or others plan it
		case err != nil:
			p.Failed("reading the schedule of a late run", err)
			return false, err
		}
		d, taken := decide.Begin(st, run)
		if !taken {
			return false, nil
		}
		done, err := p.try(ctx, d)
		if err != nil {
			p.Failed("taking back a late run", err)
		}
		if done || err != nil {
			return done, err
		}
	}
	return false, delaytask.ErrContended
}

// fewRuns is how many rows of the history are read to find a run: some say of ticks that they did not run.
const fewRuns = 20

// replacedAlone reports whether the task is the run that was replaced last, and no other was replaced with it: one that
// was triggered beside it may be at work still. Ticks do not tell which was the last: a run of a tick that is late may
// have replaced one that was triggered after it.
func replacedAlone(runs []row.ScheduleRun, task int64) bool {
	runs = slices.DeleteFunc(runs, func(r row.ScheduleRun) bool {
		return r.TaskID == 0 || r.Outcome != row.OutcomeCancelled
	})
	slices.SortFunc(runs, func(a, b row.ScheduleRun) int { return cmp.Compare(b.Finish, a.Finish) })
	return len(runs) > 0 && runs[0].TaskID == task && (len(runs) == 1 || runs[1].Finish < runs[0].Finish)
}

// waiting returns the run that is planted and waits although its tick is due.
func waiting(st *decide.State) (row.Row, bool) {
	for _, o := range st.Open {
		r := o.Task
		if r.Status == row.Pending && r.Attempt == 0 && r.TickOf != nil && r.Expected <= st.Now && r.Due > st.Now {
			return r, true
		}
	}
	return row.Row{}, false
}

func (p *Planner) putForward(ctx context.Context, r row.Row, now row.Time) error {
	applied, err := p.Store.Update(ctx, nil, []row.Change{{
		ID: r.ID, Version: r.Version, From: row.Pending, To: row.Pending, Due: now, Attempt: r.Attempt,
		CrashCount: r.CrashCount, Errors: r.Errors, ErrorStack: r.ErrorStack, Executor: r.Executor, SameExecutor: true,
	}})
	if err != nil || applied == 0 {
		return err
	}
	r.Version, r.Due = r.Version+1, now
	p.Committed(r.Sighting())
	return nil
}

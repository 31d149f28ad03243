package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Finish completes a task that was popped, on this node or another. It returns [processor.ErrLeaseLost] when the version is no
// longer the holder's; nothing is changed then.
func (e *Engine) Finish(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, id, version, func(u *run, reg *processor.Registration, now row.Time) settlement {
		return e.runner.outcome(u, reg, now, nil, nil)
	})
}

// Fail spends the attempt of a popped task, as a processor's error does.
func (e *Engine) Fail(ctx context.Context, id, version int64, failure error) error {
	return e.pops.end(ctx, id, version, func(u *run, reg *processor.Registration, now row.Time) settlement {
		return e.runner.outcome(u, reg, now, failure, nil)
	})
}

// Release gives a popped task back without spending its attempt.
func (e *Engine) Release(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, id, version, func(u *run, _ *processor.Registration, now row.Time) settlement {
		return released(u, now)
	})
}

// Touch moves the lease of a popped task to now plus ttr.
func (e *Engine) Touch(ctx context.Context, id, version int64, ttr time.Duration) error {
	states, err := e.store.Renew(ctx, []row.Lease{{Ref: row.Ref{ID: id, Version: version}, TTR: ttr}})
	if err != nil {
		return err
	}
	if len(states) == 0 {
		return processor.ErrNotFound
	}
	if states[0].Version != version || states[0].Status != row.Executing {
		return processor.ErrLeaseLost
	}
	e.pops.moved(states[0])
	return nil
}

// end settles a popped task. A lost reply is read back, so a repeated call by the same holder finds its own result.
func (p *pops) end(
	ctx context.Context, id, version int64, decide func(*run, *processor.Registration, row.Time) settlement,
) error {
	for n := range controlTries {
		if n > 0 && !sleep(ctx, pause(n)) {
			return context.Cause(ctx)
		}
		r, err := p.row(ctx, id, version)
		if err != nil {
			return err
		}
		reg, _ := p.cfg.Registry.Lookup(r.Tag)
		now, err := p.certain(ctx)
		if err != nil {
			return err
		}
		s := decide(p.runOf(r), &reg, now)
		applied, err := p.store.Update(ctx, nil, []row.Change{s.change})
		switch {
		case err == nil && applied == 1, err != nil && isApplied(ctx, p.store, s.change):
			p.ended(r, s)
			return nil
		case err != nil && !mayRetry(err):
			return err
		case err == nil:
			p.compare(ctx, r)
		}
	}
	return processor.ErrContended
}

// compare lets go of a task that is somebody else's by now, so that the next look finds what the table says.
func (p *pops) compare(ctx context.Context, r *row.Row) {
	states, err := p.store.States(ctx, []int64{r.ID})
	if err != nil {
		return
	}
	if len(states) == 1 && states[0].Version == r.Version && states[0].Status == row.Executing {
		return
	}
	if h := p.get(r.ID, r.Version); h != nil {
		p.letGo(h)
	}
}

// row returns the task if the version still holds it.
func (p *pops) row(ctx context.Context, id, version int64) (*row.Row, error) {
	if h := p.get(id, version); h != nil {
		return &h.run.row, nil
	}
	rows, _, err := p.store.Get(ctx, nil, []int64{id})
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, processor.ErrNotFound
	case rows[0].Status != row.Executing || rows[0].Version != version:
		return nil, processor.ErrLeaseLost
	}
	return &rows[0], nil
}

// runOf returns what is known here of the task's attempt: all of it on the node that handed it out.
func (p *pops) runOf(r *row.Row) *run {
	if h := p.get(r.ID, r.Version); h != nil {
		return h.run
	}
	return &run{row: *r, due: r.Expected, started: p.now()}
}

// ended is what follows the end of a popped task.
func (p *pops) ended(r *row.Row, s settlement) {
	p.metrics.Run(r.Tag, s.kind)
	if h := p.get(r.ID, r.Version); h != nil {
		p.letGo(h)
	}
	switch s.change.To {
	case row.Pending:
		if s.change.Attempt == r.Attempt {
			p.metrics.Retried(r.Tag)
		}
		d := dueOf(r)
		d.Version, d.Due = d.Version+1, s.change.Due
		p.arm.written(d)
	case row.Failed:
		p.taskFailed(r, r.Expected, s.err)
	}
}

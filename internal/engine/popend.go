package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Finish completes a task that was popped, on this node or another. It returns [processor.ErrLeaseLost] when the
// version is no longer the holder's; nothing is changed then.
func (e *Engine) Finish(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, &ending{id: id, version: version, decide: e.completed})
}

func (e *Engine) completed(a *attempt, reg *processor.Registration, now row.Time) settlement {
	return e.runner.outcome(a, reg, now, nil, nil)
}

// FinishAll completes many. There is one answer for each, as [Engine.Finish] gives it; of two with the same id and
// version the first one counts.
func (e *Engine) FinishAll(ctx context.Context, tokens []row.Ref) []error {
	answers := make([]error, 0, len(tokens))
	for page := range slices.Chunk(tokens, settleRows) {
		ends := make([]*ending, len(page))
		for i, t := range page {
			ends[i] = &ending{id: t.ID, version: t.Version, decide: e.completed}
		}
		answers = append(answers, e.pops.endPage(ctx, ends)...)
	}
	return answers
}

// Fail spends the attempt of a popped task, as a processor's error does.
func (e *Engine) Fail(ctx context.Context, id, version int64, failure error) error {
	return e.pops.end(ctx, &ending{id: id, version: version,
		decide: func(a *attempt, reg *processor.Registration, now row.Time) settlement {
			return e.runner.judge(a, reg, now, failure, nil)
		}})
}

// Release gives a popped task back without spending its attempt.
func (e *Engine) Release(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, &ending{id: id, version: version,
		decide: func(a *attempt, _ *processor.Registration, now row.Time) settlement { return released(a, now) }})
}

// Unclaim is Release for a task that was handed to nobody after all.
func (e *Engine) Unclaim(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, &ending{id: id, version: version,
		decide: func(a *attempt, _ *processor.Registration, now row.Time) settlement {
			s := released(a, now)
			s.change.Execution = a.row.Execution
			return s
		}})
}

// extendTries are within about 200 ms: somebody may only be asking whether the row is locked.
const extendTries = 5

// Touch moves the lease of a popped task to now plus ttr.
func (e *Engine) Touch(ctx context.Context, id, version int64, ttr time.Duration) error {
	moved := []row.Lease{{Ref: row.Ref{ID: id, Version: version}, TTR: ttr}}
	var states []row.State
	err := whileLocked(ctx, extendTries, func() (err error) {
		states, err = e.extend(ctx, moved)
		return err
	})
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

// attemptOfRow returns what is known here of the task's attempt: all of it on the node that handed it out or still runs its
// processor. On another one it began with the last change of its row, as far as that shows.
func (p *pops) attemptOfRow(r *row.Row) *attempt {
	if h := p.get(r.ID, r.Version); h != nil {
		return h.attempt
	}
	known := &attempt{row: *r, due: r.Expected, started: min(max(r.Updated, r.Expected), p.now())}
	if r.FirstStart() {
		known.started = r.Execution
	}
	if a := p.runner.attempts.get(r.ID); a != nil && a.row.Version == r.Version {
		a.mu.Lock()
		known.due, known.started, known.row.Execution = a.due, cmp.Or(a.started, known.started), a.row.Execution
		a.mu.Unlock()
	}
	return known
}

// ended is what follows the end of a task that was handed out.
func (p *pops) ended(e *ending) {
	r, s := e.row, e.result
	e.err = nil
	p.Metrics.Run(r.Tag, s.kind)
	if a := p.runner.attempts.get(r.ID); a != nil && a.row.Version == e.version {
		a.answer()
	}
	if h := p.get(r.ID, e.version); h != nil { // asked for last: the task may just be changing over from runs to here
		p.letGo(h)
	}
	switch s.change.To {
	case row.Pending:
		if s.change.Attempt == r.Attempt {
			p.Metrics.Retried(r.Tag)
			p.attemptFailed(r, s.err, s.change.Due)
		}
		d := r.Sighting()
		d.Version, d.Due = e.version+1, s.change.Due
		p.arm.written(d)
	case row.Failed:
		p.taskFailed(r, r.Expected, s.err)
	}
}

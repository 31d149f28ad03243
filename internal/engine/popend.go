package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Finish completes a task that was popped on any node. It returns [processor.ErrLeaseLost] and changes nothing when the
// task is not executing at the version.
func (e *Engine) Finish(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, &ending{id: id, version: version, decide: e.completed})
}

func (e *Engine) completed(a *attempt, reg *processor.Registration, now row.Time) settlement {
	return e.runner.outcome(a, reg, now, nil, nil)
}

// FinishAll completes many tasks. It returns an answer for each, as [Engine.Finish] does. Of two with the same id and
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

// Release makes a popped task pending without spending its attempt.
func (e *Engine) Release(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, &ending{id: id, version: version,
		decide: func(a *attempt, _ *processor.Registration, now row.Time) settlement { return released(a, now) }})
}

// Unclaim is Release for a task that reached no caller: it counts as not started.
func (e *Engine) Unclaim(ctx context.Context, id, version int64) error {
	return e.pops.end(ctx, &ending{id: id, version: version,
		decide: func(a *attempt, _ *processor.Registration, now row.Time) settlement {
			s := released(a, now)
			s.change.Execution = a.row.Execution
			return s
		}})
}

// extendTries are made within about 200 ms, for a process that only asks whether the row is locked holds it for less.
const extendTries = 5

// Touch moves the end of a popped task's lease to now plus ttr.
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

// compare lets go of a task that is another's by now, so that the next look finds what the table says.
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

// attemptOfRow returns what is known here of the task's attempt. The node that handed it out, or still runs its
// processor, knows all. For another node it began with the last change of its row.
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

// ended does what follows the end of a task that was handed out.
func (p *pops) ended(e *ending) {
	r, s := e.row, e.result
	e.err = nil
	p.Metrics.Run(r.Tag, s.kind)
	if a := p.runner.attempts.get(r.ID); a != nil && a.row.Version == e.version {
		a.answer()
	}
	if h := p.get(r.ID, e.version); h != nil { // last, because a hand-over may be moving the task to here
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

package lease

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Ends ends tasks for the holders of their lease tokens. Many callers share one statement.
type Ends struct {
	*deps
	holders *holders
	queue   *batch.Coalescer[*endCall]
}

func newEnds(c *deps, holders *holders) *Ends {
	q := &Ends{deps: c, holders: holders}
	// What a statement does not settle its caller tries again alone, so a locked or refused row holds up no other.
	q.queue = batch.New(batch.Config[*endCall]{
		Flush: q.endBatch, Panicked: q.endPanicked, Flushers: 2, MaxItems: run.SettleRows, Count: (*endCall).count,
	})
	return q
}

// ending is the end of a task that was handed out, as its holder asks for it.
type ending struct {
	id, version int64
	decide      func(*run.Attempt, *processor.Registration, row.Time) run.Settlement

	row    *row.Row       // as it was read, while the version holds it
	result run.Settlement // what was sent last
	unsure bool           // result was sent without a reply, so it may be applied
	again  bool           // the first try has not answered
	err    error          // the answer, or what the last try met
}

// endCall are the ends that one caller asks for at once.
type endCall struct {
	ends []*ending
	done chan struct{} // closed after the first try
}

func (c *endCall) count() int { return len(c.ends) }

func (q *Ends) endBatch(calls []*endCall) {
	var all []*ending
	for _, c := range calls {
		all = append(all, c.ends...)
	}
	q.Metrics.Batch("end", len(all))
	ctx, cancel := q.Call()
	defer cancel()
	for _, e := range q.tryEnd(ctx, all, len(calls) > 1) {
		e.again = true
	}
	for _, c := range calls {
		close(c.done)
	}
}

// endPanicked lets each caller try alone.
func (q *Ends) endPanicked(calls []*endCall, value any) {
	q.Log.Error("ending popped tasks panicked", "panic", value, "stack", string(debug.Stack()))
	for _, c := range calls {
		for _, e := range c.ends {
			e.again = true
		}
		close(c.done)
	}
}

// end settles a task that was handed out.
func (q *Ends) end(ctx context.Context, e *ending) error { return q.endPage(ctx, []*ending{e})[0] }

// endPage settles up to [run.SettleRows] tasks that were handed out. Pages of several callers share a statement. It
// returns an answer for each task.
func (q *Ends) endPage(ctx context.Context, page []*ending) []error {
	answers := make([]error, len(page))
	fill := func(err error) []error {
		for i := range answers {
			answers[i] = err
		}
		return answers
	}
	c := &endCall{ends: page, done: make(chan struct{})}
	if err := q.queue.Add(c); err != nil {
		return fill(delaytask.ErrClosed)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return fill(context.Cause(ctx))
	}
	again, _ := batch.Split(page, func(e *ending) bool { return e.again })
	q.retryEnds(ctx, again)
	for i, e := range page {
		answers[i] = e.err
	}
	return answers
}

// retryEnds tries again until every ending has its answer in err, or ctx has ended.
func (q *Ends) retryEnds(ctx context.Context, open []*ending) {
	for n := 1; len(open) > 0 && n < table.ChangeTries && lifecycle.Sleep(ctx, lifecycle.Backoff(n)); n++ {
		open = q.tryEnd(ctx, open, false)
	}
	for _, e := range open {
		switch cause := context.Cause(ctx); {
		case cause != nil && e.unsure:
			e.err = fmt.Errorf("%w: whether the task was ended is not known: %w", cause, e.err)
		case cause != nil:
			e.err = cause
		case e.err == nil:
			e.err = delaytask.ErrContended
		}
	}
}

// Finish completes a task that was popped on any node. It returns [delaytask.ErrLeaseLost] and changes nothing when the
// task is not executing at the version.
func (q *Ends) Finish(ctx context.Context, id, version int64) error {
	return q.end(ctx, &ending{id: id, version: version, decide: q.pool.Complete})
}

// FinishAll completes many tasks. It returns an answer for each, as [Ends.Finish] does. Of two with the same id and
// version the first one counts.
func (q *Ends) FinishAll(ctx context.Context, tokens []row.Ref) []error {
	answers := make([]error, 0, len(tokens))
	for page := range slices.Chunk(tokens, run.SettleRows) {
		ends := make([]*ending, len(page))
		for i, t := range page {
			ends[i] = &ending{id: t.ID, version: t.Version, decide: q.pool.Complete}
		}
		answers = append(answers, q.endPage(ctx, ends)...)
	}
	return answers
}

// Fail spends the attempt of a popped task, as a processor's error does.
func (q *Ends) Fail(ctx context.Context, id, version int64, failure error) error {
	return q.end(ctx, &ending{id: id, version: version,
		decide: func(a *run.Attempt, reg *processor.Registration, now row.Time) run.Settlement {
			return q.pool.Judge(a, reg, now, failure, nil)
		}})
}

// Release makes a popped task pending without spending its attempt.
func (q *Ends) Release(ctx context.Context, id, version int64) error {
	return q.end(ctx, &ending{id: id, version: version,
		decide: func(a *run.Attempt, _ *processor.Registration, now row.Time) run.Settlement {
			return run.Released(a, now)
		}})
}

// Unclaim is Release for a task that reached no caller: it counts as not started.
func (q *Ends) Unclaim(ctx context.Context, id, version int64) error {
	return q.end(ctx, &ending{id: id, version: version,
		decide: func(a *run.Attempt, _ *processor.Registration, now row.Time) run.Settlement {
			s := run.Released(a, now)
			s.Change.Execution = a.Row.Execution
			return s
		}})
}

// extendTries are made within about 200 ms: a process that only asks whether the row is locked holds it for less.
const extendTries = 5

// Touch moves the end of a popped task's lease to now plus ttr.
func (q *Ends) Touch(ctx context.Context, id, version int64, ttr time.Duration) error {
	moved := []row.Lease{{Ref: row.Ref{ID: id, Version: version}, TTR: ttr}}
	var states []row.State
	err := table.WhileLocked(ctx, extendTries, func() (err error) {
		states, err = q.Extend(ctx, moved)
		return err
	})
	if err != nil {
		return err
	}
	if len(states) == 0 {
		return delaytask.ErrNotFound
	}
	if states[0].Version != version || states[0].Status != row.Executing {
		return delaytask.ErrLeaseLost
	}
	q.holders.moved(states[0])
	return nil
}

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// stopReleaseWait is how long an interrupted processor may take to return.
const stopReleaseWait = time.Second

// Pool claims tasks, runs their processors at their due times, and stores their results.
type Pool struct {
	*runner
	claimer    *claimer
	dispatcher *dispatcher
	renewer    *renewer
	end        context.CancelCauseFunc // ends the contexts of running processors
}

// New makes what runs tasks in a process.
func New(a *arm.Arm, q *runqueue.Queue, cfg Config) *Pool {
	c := &deps{Events: a.Events, cfg: cfg, runqueue: q, arm: a}
	r := &runner{deps: c, Attempts: newAttempts()}
	r.Settler = newSettler(c, r.Attempts)
	p := &Pool{runner: r, renewer: newRenewer(r)}
	r.base, p.end = context.WithCancelCause(a.Life)
	p.dispatcher = newDispatcher(r, p.renewer)
	p.claimer = newClaimer(c, p.dispatcher.add)
	return p
}

// HandTo says who takes the tasks that others work on. It is called before the first claim.
func (p *Pool) HandTo(h Holders) { p.holders = h }

// Start begins to start claimed tasks at their due times, and to renew leases, until the life ends.
func (p *Pool) Start() {
	p.Go(func() { p.dispatcher.loop(p.Life) })
	p.Go(func() { p.renewer.loop(p.Life, &p.renewer.short) })
	p.Go(func() { p.renewer.loop(p.Life, &p.renewer.long) })
	p.Go(func() { p.renewer.look(p.Life) })
	p.Go(func() { p.renewer.deadlines(p.Life) })
}

// Claim claims what the run queue picks, until ctx ends.
func (p *Pool) Claim(ctx context.Context) { p.claimer.loop(ctx) }

// EndProcessors ends the contexts of running processors.
func (p *Pool) EndProcessors(cause error) { p.end(cause) }

// Stopped ends the attempt of a task that was cancelled through this process, before the next look.
func (p *Pool) Stopped(id int64) { p.renewer.cancelled(id) }

// Renewed returns when the renewals in flight have ended.
func (p *Pool) Renewed() { p.renewer.await() }

// RunNow claims a due task, and runs its processor in the calling goroutine. It returns what the processor returned,
// and whether the task could be claimed.
func (p *Pool) RunNow(ctx context.Context, d row.Due) (result error, ran bool, err error) {
	p.runqueue.AddDue([]row.Due{d}, false, p.Now())
	for _, it := range p.runqueue.Pick(1, 0, false) {
		claim := row.Claim{
			Executor: p.claimer.freshExecutor(false), IP: p.cfg.IP, Rows: []row.Ref{{ID: it.ID, Version: it.Version}},
		}
		claimed, err := p.Store.Claim(ctx, claim)
		if err != nil || len(claimed.Rows) == 0 {
			p.runqueue.Release(it, runqueue.Ended)
			return nil, false, err
		}
		claimed.Rows[0].Process = p.cfg.Process.String()
		a := newAttempt(it, claimed.Rows[0], claimed.Reading.Time, time.Now())
		p.Attempts.add(a)
		result, ran = p.execute(a), true
	}
	return result, ran, nil
}

// HasResultsAlone reports whether results are all that a stop waits for.
func (p *Pool) HasResultsAlone() bool {
	left := p.Attempts.list()
	return len(left) > 0 && !slices.ContainsFunc(left, func(a *Attempt) bool {
		progress, _, _ := a.state()
		return progress != returned
	})
}

// mostTold is how many tasks one message of the log names.
const mostTold = 100

// Close writes the results that are queued, until ctx ends. It returns [delaytask.ErrResultsNotStored] when some are
// left, and the log says of which tasks.
func (p *Pool) Close(ctx context.Context) error {
	err := p.Settler.queue.Close(ctx)
	left := p.await(ctx, func(a *Attempt) bool { // whose caller's transaction decides, while its processor goes on
		progress, _, by := a.state()
		return by == byTransaction && progress != returned
	})
	if len(left) == 0 {
		return err
	}
	ids := row.IDsOf(left, (*Attempt).id)
	p.Log.Error("results could not be stored; their tasks stay executing, and run again when their leases are over",
		"tasks", ids[:min(len(ids), mostTold)], "all", len(ids))
	return errors.Join(err, fmt.Errorf("%w: %d tasks", delaytask.ErrResultsNotStored, len(ids)))
}

// await waits until no attempt is left but the excepted, and returns the others when ctx ends before.
func (p *Pool) await(ctx context.Context, except func(*Attempt) bool) (left []*Attempt) {
	for {
		left = slices.DeleteFunc(p.Attempts.list(), except)
		if len(left) == 0 {
			return nil
		}
		select {
		case <-p.Attempts.gone:
		case <-ctx.Done():
			return left
		}
	}
}

// Drain waits until the outcome of every claim is known and the result of every attempt is stored. It does not wait for
// rows that are to be claimed again, which the table has, nor for rows that were handed out, whose holders end them.
func (p *Pool) Drain(ctx context.Context) error {
	wait := func(c <-chan struct{}) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := wait(p.claimer.idle()); err != nil {
		return err
	}
	if len(p.await(ctx, func(*Attempt) bool { return false })) > 0 {
		return context.Cause(ctx)
	}
	return nil
}

// ReleaseRest waits a moment for processors to obey their ended context. It releases the rows of those that do not; the
// fence refuses their late results.
func (p *Pool) ReleaseRest() {
	until := time.NewTimer(stopReleaseWait)
	defer until.Stop()
	for p.Attempts.Len() > 0 {
		select {
		case <-p.Attempts.gone:
			continue
		case <-until.C:
		}
		break
	}
	for _, a := range p.Attempts.list() {
		if progress, _, by := a.state(); progress == claimed || progress == returned || by == byTransaction {
			continue
		}
		p.Metrics.IgnoredContext()
		p.Log.Error("a processor ignores that the scheduler stops; its task is released", "task", a.Row.ID,
			"tag", a.Row.Tag, "stack", stackOf(a))
		result := Settlement{attempt: a, Change: Released(a, p.Now()).Change, Kind: metrics.RunReleased}
		if err := p.Settler.queue.Add(result); err != nil {
			p.Log.Error("the task was not released; it runs again when its lease is over",
				"task", a.Row.ID, "tag", a.Row.Tag, "err", err)
		}
	}
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Stop ends the engine. Where other nodes take the shares over, it goes on to claim what falls due until they do. Tasks
// that run may finish within the grace. Those that still run then are released, which spends no attempt. Every result
// and every save is written. Stop returns the cause of ctx when that ends before the processors do; their tasks are
// released then. Calls after the first wait for it and return the same.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	if e.stopped != nil {
		e.mu.Unlock()
		<-e.stopped
		return e.stopErr
	}
	e.stopped = make(chan struct{})
	e.mu.Unlock()
	defer close(e.stopped)
	e.stopErr = e.stop(ctx)
	return e.stopErr
}

func (e *Engine) stop(ctx context.Context) error {
	e.endFinders()
	e.findersDone.Wait()
	findersErr := e.passes.stop()
	told := e.announceLeaving()
	grace, cancelGrace := context.WithTimeoutCause(ctx, e.cfg.StopGrace, processor.ErrGraceEnded)
	defer cancelGrace()
	if told {
		e.handSharesOver(grace)
	}
	e.tags.run(false)
	e.endSources()
	e.sourcesDone.Wait()
	e.pops.close()
	e.runqueue.Close()

	drainErr := e.drain(grace)
	e.endProcessors(processor.ErrStopping)
	if drainErr != nil {
		e.releaseRest()
	}
	last, cancel := context.WithTimeout(e.Life, e.cfg.CallTimeout)
	defer cancel()
	err := errors.Join(
		findersErr, e.settler.close(last), e.runner.handover.queue.Close(last), e.ends.queue.Close(last),
		e.pops.looks.Close(last), e.holders.expiries.Close(last), e.saver.Close(last),
	)
	if e.cfg.Waker != nil {
		_ = e.notifier.notifyAll(last) // of what was released
		e.cfg.Waker.Close()
	}
	err = errors.Join(err, e.member.Leave(last))
	e.closeRollup()
	e.waitForHooks(last)
	e.End()
	e.watch.waits.close()
	e.watch.close()
	return errors.Join(drainErr, err)
}

// closeRollup writes what was counted. It is no reason for a stop to fail.
func (e *Engine) closeRollup() {
	if e.started {
		e.markNode(row.MarkLeft)
	}
	ctx, cancel := context.WithTimeout(e.Life, leaveTimeout)
	defer cancel()
	e.rollup.Close(ctx)
}

func (e *Engine) waitForHooks(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		e.hooks.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		e.Log.Error("a hook has not returned; the scheduler stops without it")
	}
}

// drain waits until the outcome of every claim is known and the result of every attempt is stored. It does not wait for
// rows that are to be claimed again, which the table has, nor for rows that were handed out, whose holders end them.
func (e *Engine) drain(ctx context.Context) error {
	wait := func(c <-chan struct{}) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := wait(e.claimer.idle()); err != nil {
		return err
	}
	for e.attempts.len() > 0 {
		if err := wait(e.attempts.gone); err != nil {
			return err
		}
	}
	return nil
}

// releaseRest waits a moment for processors to obey their ended context. It releases the rows of those that do not; the
// fence refuses their late results.
func (e *Engine) releaseRest() {
	until := time.NewTimer(stopReleaseWait)
	defer until.Stop()
	for e.attempts.len() > 0 {
		select {
		case <-e.attempts.gone:
			continue
		case <-until.C:
		}
		break
	}
	for _, a := range e.attempts.list() {
		if progress, _, by := a.state(); progress == claimed || progress == returned || by == byTransaction {
			continue
		}
		e.Metrics.IgnoredContext()
		e.Log.Error("a processor ignores that the scheduler stops; its task is released", "task", a.row.ID,
			"tag", a.row.Tag, "stack", stackOf(a))
		result := settlement{attempt: a, change: released(a, e.now()).change, kind: metrics.RunReleased}
		if err := e.settler.queue.Add(result); err != nil {
			e.Log.Error("the task was not released; it runs again when its lease is over",
				"task", a.row.ID, "tag", a.row.Tag, "err", err)
		}
	}
}

// leaveTick is how often a leaving node checks whether it has anything left to claim.
const leaveTick = 20 * time.Millisecond

// handSharesOver goes on to claim what falls due here until the other nodes have taken over, so that nothing of this
// node's share is late. Within a look-ahead they see that this node leaves, and arm what is theirs from then on. It
// returns when nothing of the share is left, after two look-aheads, or after half of the grace: the rest is for what
// runs. Where no other node serves a tag it returns at once.
func (e *Engine) handSharesOver(grace context.Context) {
	shares := e.arm.shares.Load()
	if shares == nil || !shares.view.Others(e.tags.list()) {
		return
	}
	ctx, cancel := context.WithTimeout(grace, min(e.cfg.shortTerm(), e.cfg.StopGrace/2))
	defer cancel()
	until := e.now().Add(e.cfg.shortTerm())
	// The shares stay as they were, with this node in them. A last look-ahead reads to the end of what the others may
	// not know of.
	if err := e.lookahead.readWindow(ctx, e.tags.list()); err != nil && ctx.Err() == nil {
		e.Failed("looking ahead", err)
	}
	for e.runqueue.Claimable(until) && lifecycle.Sleep(ctx, leaveTick) {
	}
}

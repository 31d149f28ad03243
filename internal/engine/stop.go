package engine

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/report"
)

// Stop ends the engine. Where other nodes take the shares over, it goes on to claim what falls due until they do. Tasks
// that run may finish within the grace. Those that still run then are released, which spends no attempt. Every result
// and every save is written. Stop returns the cause of ctx when that ends before the processors do; their tasks are
// released then. It returns [delaytask.ErrResultsNotStored] when results could not be written. Calls after the first
// wait for it and return the same.
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
	findersErr := e.stopFinders()
	told := e.announceLeaving()
	grace, cancelGrace := context.WithTimeoutCause(ctx, e.cfg.StopGrace, delaytask.ErrGraceEnded)
	defer cancelGrace()
	if told {
		e.handSharesOver(grace)
	}
	e.arm.Tags.Run(false)
	e.endSources()
	e.sourcesDone.Wait()
	e.leases.ClosePops()
	e.runqueue.Close()

	drainErr := e.pool.Drain(grace)
	if drainErr != nil && e.pool.HasResultsAlone() {
		drainErr = nil // all processors have returned
	}
	e.pool.EndProcessors(delaytask.ErrStopping)
	if drainErr != nil {
		e.pool.ReleaseRest()
	}
	last, cancel := e.events.Call()
	defer cancel()
	err := errors.Join(findersErr, e.pool.Close(last), e.leases.CloseQueues(last), e.CloseSaves(last))
	leave, cancel := e.events.Call() // what is not stored must not keep the node
	defer cancel()
	if e.cfg.Waker != nil {
		_ = e.arm.Notifier.NotifyAll(leave) // of what was released
		e.cfg.Waker.Close()
	}
	err = errors.Join(err, e.member.Leave(leave))
	e.closeRollup()
	e.events.WaitForHooks(leave)
	e.events.End()
	e.events.Close()
	return errors.Join(drainErr, err)
}

func (e *Engine) stopFinders() error {
	ctx, cancel := e.events.Call()
	defer cancel()
	return e.find.Stop(ctx)
}

// closeRollup writes what was counted. It is no reason for a stop to fail.
func (e *Engine) closeRollup() {
	if e.started {
		e.markNode(report.MarkLeft)
	}
	ctx, cancel := context.WithTimeout(e.events.Life, leaveTimeout)
	defer cancel()
	e.events.Rollup.Close(ctx)
}

// leaveTick is how often a leaving node checks whether it has anything left to claim.
const leaveTick = 20 * time.Millisecond

// handSharesOver goes on to claim what falls due here until the other nodes have taken over, so that nothing of this
// node's share is late. Within a look-ahead they see that this node leaves, and arm what is theirs from then on. It
// returns when nothing of the share is left, after two look-aheads, or after half of the grace: the rest is for what
// runs. Where no other node serves a tag it returns at once.
func (e *Engine) handSharesOver(grace context.Context) {
	view := e.arm.View()
	if view == nil || !view.Others(e.arm.Tags.List()) {
		return
	}
	ctx, cancel := context.WithTimeout(grace, min(e.arm.ShortTerm(), e.cfg.StopGrace/2))
	defer cancel()
	until := e.events.Now().Add(e.arm.ShortTerm())
	// The shares stay as they were, with this node in them. A last look-ahead reads to the end of what the others may
	// not know of.
	if _, err := e.arm.ReadWindow(ctx, e.arm.Tags.List()); err != nil && ctx.Err() == nil {
		e.events.Failed("looking ahead", err)
	}
	for e.runqueue.Claimable(until) && lifecycle.Sleep(ctx, leaveTick) {
	}
}

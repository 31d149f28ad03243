package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
)

// heartbeat keeps the node's lease of its number.
func (e *Engine) heartbeat(ctx context.Context) {
	for e.restBetweenBeats(ctx) {
		e.announceAtBeat()
		call, cancel := e.events.CallIn(ctx)
		if err := e.member.Beat(call); err != nil {
			e.events.Failed("sending the heartbeat", err)
		} else {
			now := time.Now()
			e.events.Answered(now)
			e.arm.Census.Beat(now)
		}
		cancel()
	}
}

const (
	// introduceEvery is how often a process says that it was seen. Its name outlives it by as long as tasks are kept.
	introduceEvery = time.Minute
	introduceAgain = 5 * time.Second // after an error
)

// introduce stores what people call this process, because its executors are numbers. No heartbeat waits for that.
func (e *Engine) introduce(ctx context.Context) {
	for wait := time.Duration(0); lifecycle.Sleep(ctx, lifecycle.Jitter(wait, 0.1)); {
		call, cancel := e.events.CallIn(ctx)
		err := e.events.Store.Introduce(call, e.process)
		cancel()
		if wait = introduceEvery; err != nil && ctx.Err() == nil {
			e.events.Failed("introducing the process", err)
			wait = introduceAgain
		}
	}
}

// beatPause is between two heartbeats that have something new to announce.
const beatPause = 100 * time.Millisecond

// restBetweenBeats waits for the next heartbeat, which comes soon when there is something new to announce.
func (e *Engine) restBetweenBeats(ctx context.Context) bool {
	next := time.NewTimer(lifecycle.Jitter(e.cfg.Heartbeat, 0.05))
	defer next.Stop()
	select {
	case <-next.C:
		return true
	case <-e.beatSoon:
		return lifecycle.Sleep(ctx, beatPause)
	case <-ctx.Done():
		return false
	}
}

// announceAtBeat lets the next heartbeat say which tags are served here, and how this process is told of rows.
func (e *Engine) announceAtBeat() { e.describe(e.running()) }

func (e *Engine) describe(running bool) {
	if e.cfg.Waker != nil {
		w := e.cfg.Waker.Row(e.arm.Census.Process.Token)
		e.events.Metrics.SetUnreachable(len(w.Unreachable))
		w.Pops = e.arm.Tags.PoppedLately()
		e.member.SetWake(w)
	}
	if running {
		e.member.SetTags(e.arm.Tags.Served())
	}
}

// announce tells the other nodes at once which tags are served here.
func (e *Engine) announce() {
	ctx, cancel := e.events.CallIn(e.finders)
	defer cancel()
	if err := e.member.Beat(ctx); err != nil && e.finders.Err() == nil {
		e.events.Failed("announcing the node", err)
	}
}

// announceLeaving lets the other nodes take this node's shares, and reports whether they can know it.
func (e *Engine) announceLeaving() bool {
	e.member.SetLeaving()
	ctx, cancel := context.WithTimeout(e.events.Life, leaveTimeout)
	defer cancel()
	if err := e.member.Beat(ctx); err != nil {
		e.events.Failed("announcing that the node leaves", err)
		return false
	}
	return true
}

// leaveTimeout is how long a stop waits for a database that does not answer.
const leaveTimeout = time.Second

// Ready returns nil when the clock has an anchor, the node holds its number, and its heartbeat is fresh. When the last
// heartbeat is old, Ready writes one, within ctx. It returns the error of the last claim or save when that failed
// within failureCounts for the database's fault. A claim without an answer for [table.LockWait] has failed.
func (e *Engine) Ready(ctx context.Context) error {
	if _, anchored := e.events.Bounds.AtLeast(); !anchored {
		return errors.New("the database's clock is not known; it is being read again")
	}
	if e.member.Silent() > e.cfg.Heartbeat {
		ctx, cancel := e.events.CallIn(ctx)
		defer cancel()
		if err := e.member.Beat(ctx); err != nil {
			return err
		}
	}
	if _, leased := e.ids.Node(); !leased {
		return errors.New("the node number was lost; another one is being leased")
	}
	claim, save := e.events.Health.Failing()
	return cmp.Or(claim, save)
}

// Warning returns what an operator has to mend although the engine is ready, or "".
func (e *Engine) Warning() string { return e.find.Warning() }

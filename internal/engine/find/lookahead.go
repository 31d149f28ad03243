package find

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// contentionEvery is the shortest time between two looks at the nodes after contention.
const contentionEvery = 100 * time.Millisecond

// lookahead reads every second which nodes live, which tags are paused, and the rows that fall due within its window of
// two seconds. It arms the rows of this node's share. So it finds what other processes have saved.
type lookahead struct {
	*deps
	silences silences
	calm     time.Time // contention is no reason to look at the nodes before

	adopting atomic.Bool
}

func (l *lookahead) loop(ctx context.Context) {
	for {
		if err := l.RunOnce(ctx); err != nil && ctx.Err() == nil {
			l.Failed("looking ahead", err)
		}
		l.Metrics.SetHeap(l.runqueue.Counts().Timers)
		l.Metrics.SetRunning(l.pool.Attempts.Len())
		if !l.rest(ctx) {
			return
		}
	}
}

// rest waits for the next look-ahead, and reports whether it comes. It reads the nodes soon after contention, and soon
// after the first look.
func (l *lookahead) rest(ctx context.Context) bool {
	// Without the jitter nodes that have started together would read together.
	next := time.NewTimer(lifecycle.Jitter(l.cfg.LookAhead, 0.05))
	defer next.Stop()
	var joined <-chan time.Time
	if l.arm.Joining.Open() {
		joined = time.After(arm.JoinDelay)
	}
	for {
		contention, pause := l.runqueue.Contention, (<-chan time.Time)(nil)
		if wait := time.Until(l.calm); wait > 0 {
			contention, pause = nil, time.After(wait)
		}
		select {
		case <-next.C:
			return true
		case <-joined:
			l.redistribute(ctx)
			l.runqueue.ScanWake.Set() // what others have left
		case <-contention:
			began := time.Now()
			l.redistribute(ctx)
			// A look that hung may be followed by a long pause. The next look-ahead does not wait for it.
			l.calm = time.Now().Add(max(contentionEvery*l.arm.Census.Crowd(), lifecycle.Rest(time.Since(began))))
		case <-pause:
		case <-ctx.Done():
			return false
		}
	}
}

func (l *lookahead) redistribute(ctx context.Context) {
	call, cancel := l.CallIn(ctx)
	defer cancel()
	if err := l.readNodes(call); err == nil {
		l.runqueue.Redistribute(l.arm.Shared)
	} else if ctx.Err() == nil {
		l.Failed("looking at the nodes", err)
	}
}

// RunOnce reads tags, nodes and the window.
func (l *lookahead) RunOnce(ctx context.Context) error {
	ctx, cancel := l.CallIn(ctx)
	defer cancel()
	if err := l.readNodes(ctx); err != nil {
		return err
	}
	tags := l.arm.Tags.List()
	if len(tags) == 0 {
		return nil
	}
	lacking, err := l.arm.ReadWindow(ctx, tags)
	if len(lacking) > 0 && l.adopting.CompareAndSwap(false, true) {
		// The rest must not wait for it, which may wait for the lock of another transaction.
		l.Go(func() {
			defer l.adopting.Store(false)
			ctx, cancel := l.Call()
			defer cancel()
			if err := l.Adopt(ctx, lacking); err != nil {
				l.Failed("giving rows a due time", err)
			}
		})
	}
	return err
}

func (l *lookahead) readNodes(ctx context.Context) error {
	count, err := l.arm.Census.Read(ctx)
	if err != nil {
		return err
	}
	// After an outage no node could send a heartbeat, this one included. Until its next heartbeat it keeps the shares
	// as they were. Otherwise no node would have a share, and each would leave all rows to the others first.
	if count.Self {
		l.arm.Look(count.View)
		l.markLost(count)
	}
	return nil
}

// silences notices nodes that fall silent without having left.
type silences struct{ seen map[string]bool } // by token: the nodes that live, serve tags and do not leave

// lostAfter is how old a heartbeat is when its node counts as dead.
const lostAfter = 5 * time.Second

// look returns the nodes that have fallen silent since they were seen.
func (s *silences) look(c *arm.Count) (lost []row.Node) {
	seen := map[string]bool{}
	for _, n := range c.Living {
		seen[n.Token] = len(n.Tags) > 0 && !n.Leaving
	}
	for _, n := range c.Silent {
		if s.seen[n.Token] && c.Time.Sub(n.Heartbeat) > lostAfter {
			lost = append(lost, n)
			continue
		}
		seen[n.Token] = s.seen[n.Token]
	}
	s.seen = seen
	return lost
}

// markLost marks nodes that have fallen silent. Each node marks all of them, by the same key. After an outage of the
// database all are silent for a moment.
func (l *lookahead) markLost(c *arm.Count) {
	if l.Outage.Holds(time.Now()) {
		return
	}
	for _, n := range l.silences.look(c) {
		l.Rollup.Mark(n.Heartbeat, "", n.Token, row.Mark{Kind: report.MarkLost, Name: n.Name})
	}
}

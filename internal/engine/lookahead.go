package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// lookahead reads every second which nodes live, which tags are paused, and the rows that fall due within its window of
// two seconds. It arms those of this node's share. So it finds what other processes have saved.
type lookahead struct {
	*deps
	arm      *armer
	attempts *attempts
	census   *census
	silences silences

	adopting atomic.Bool
}

func (l *lookahead) loop(ctx context.Context) {
	for {
		if err := l.runOnce(ctx); err != nil && ctx.Err() == nil {
			l.Failed("looking ahead", err)
		}
		l.Metrics.SetHeap(l.runqueue.Counts().Timers)
		l.Metrics.SetRunning(l.attempts.len())
		if !l.rest(ctx) {
			return
		}
	}
}

// rest waits for the next look-ahead, and reports whether it comes. After contention it reads the nodes at once. Nodes
// that start together know only those that were there before, and each takes the tasks of all.
func (l *lookahead) rest(ctx context.Context) bool {
	// Without the jitter nodes that have started together would read together.
	next := time.NewTimer(lifecycle.Jitter(l.cfg.LookAhead, 0.05))
	defer next.Stop()
	for {
		select {
		case <-next.C:
			return true
		case <-l.runqueue.Contention:
			if err := l.redistribute(ctx); err != nil && ctx.Err() == nil {
				l.Failed("looking at the nodes", err)
			}
			if !lifecycle.Sleep(ctx, contentionEvery) {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

func (l *lookahead) redistribute(ctx context.Context) error {
	ctx, cancel := l.CallIn(ctx)
	defer cancel()
	if err := l.readNodes(ctx); err != nil {
		return err
	}
	l.runqueue.Redistribute(l.arm.shared)
	return nil
}

func (l *lookahead) runOnce(ctx context.Context) error {
	ctx, cancel := l.CallIn(ctx)
	defer cancel()
	if err := l.arm.tags.read(ctx); err != nil {
		return err
	}
	if err := l.readNodes(ctx); err != nil {
		return err
	}
	tags := l.arm.tags.list()
	if len(tags) == 0 {
		return nil
	}
	if l.adopting.CompareAndSwap(false, true) {
		// The rest must not wait for it, which may wait for the lock of another transaction.
		l.Go(func() {
			defer l.adopting.Store(false)
			l.adoptFound(tags)
		})
	}
	return l.readWindow(ctx, tags)
}

func (l *lookahead) readNodes(ctx context.Context) error {
	count, err := l.census.read(ctx)
	if err != nil {
		return err
	}
	// After an outage no node could send a heartbeat, this one included. Until its next heartbeat it keeps the shares
	// as they were. Otherwise no node would have a share, and each would leave all rows to the others first.
	if count.self {
		l.arm.look(count.view)
		l.markLost(count)
	}
	return nil
}

// adoptFound adopts the rows without a due time, which only an operator's SQL leaves behind.
func (l *lookahead) adoptFound(tags []string) {
	ctx, cancel := l.Call()
	defer cancel()
	found, err := l.store.Due(ctx, row.Window{Tags: tags, To: row.MinTime, Limit: lookAheadRows})
	if err != nil {
		l.Failed("looking for rows without a due time", err)
		return
	}
	var refs []row.Ref
	for _, d := range found {
		if d.Due.IsZero() {
			refs = append(refs, row.Ref{ID: d.ID, Version: d.Version})
		}
	}
	if err := l.adopt(ctx, refs); err != nil {
		l.Failed("giving rows a due time", err)
	}
}

// readWindow arms what falls due from a second ago to the end of the window.
func (l *lookahead) readWindow(ctx context.Context, tags []string) error {
	now, anchored := l.clock.AtLeast()
	if !anchored {
		return nil
	}
	w := row.Window{Tags: tags, From: now.Add(-runqueue.Overdue), To: now.Add(l.cfg.Window), Limit: lookAheadRows}
	for {
		page, err := l.due(ctx, w)
		if err != nil {
			return err
		}
		for _, d := range page {
			if l.arm.mine(d.ID, d.Due, d.Tag) {
				l.runqueue.Arm(d, false)
			}
		}
		if len(page) < w.Limit {
			return nil
		}
		last := page[len(page)-1]
		w.From, w.AfterID = last.Due, last.ID
	}
}

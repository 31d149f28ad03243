package engine

import (
	"context"
	"errors"

	"github.com/delaytask/delaytask/internal/runqueue"
)

// leases gives tasks to callers by lease tokens, and takes their ends.
type leases struct {
	*ends
	*pops
	*handover
	holders *holders
}

// newLeases makes what hands the tasks of a pool out. Looks for pops end when finders does.
func newLeases(p *pool, q *runqueue.Queue, cfg leaseConfig, finders context.Context) *leases {
	c := &leaseDeps{events: p.events, cfg: cfg, runqueue: q, arm: p.arm, pool: p}
	h := newHolders(c)
	return &leases{ends: newEnds(c, h), pops: newPops(c, h, finders), handover: newHandover(c, h), holders: h}
}

// leaseOver lets go of a task whose lease a rescue has ended.
func (l *leases) leaseOver(id, version int64) { l.holders.leaseOver(id, version) }

// closeQueues writes what is queued, and sends later calls away.
func (l *leases) closeQueues(ctx context.Context) error {
	return errors.Join(
		l.handover.queue.Close(ctx), l.ends.queue.Close(ctx), l.pops.looks.Close(ctx), l.holders.expiries.Close(ctx),
	)
}

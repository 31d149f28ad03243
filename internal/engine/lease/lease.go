// Package lease gives tasks to callers by lease tokens: to those who pop, and to the holders that processors name.
//
//	pop.go       hands tasks to callers of Pop; poplook.go looks for them in the table
//	handover.go  gives a task from its processor to the holder of its lease token
//	holders.go   knows the tasks that callers hold, and ends their leases
//	ends.go      ends tasks by their lease tokens; endtry.go tries many in one statement
package lease

import (
	"context"
	"errors"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// Leases gives tasks to callers by lease tokens, and takes their ends.
type Leases struct {
	*Ends
	*pops
	*handover
	holders *holders
}

// New makes what hands the tasks of a pool out. Looks for pops end when finders does.
func New(finders context.Context, a *arm.Arm, p *run.Pool, q *runqueue.Queue, cfg Config) *Leases {
	c := &deps{Events: a.Events, cfg: cfg, runqueue: q, arm: a, pool: p}
	h := newHolders(c)
	return &Leases{Ends: newEnds(c, h), pops: newPops(c, h, finders), handover: newHandover(c, h), holders: h}
}

// LeaseOver lets go of a task whose lease a rescue has ended.
func (l *Leases) LeaseOver(id, version int64) { l.holders.leaseOver(id, version) }

// ClosePops sends callers away who wait for tasks. Tasks that were handed out stay with their holders.
func (l *Leases) ClosePops() { l.close() }

// CloseQueues writes what is queued, and sends later calls away.
func (l *Leases) CloseQueues(ctx context.Context) error {
	return errors.Join(
		l.handover.queue.Close(ctx), l.Ends.queue.Close(ctx), l.looks.Close(ctx), l.holders.expiries.Close(ctx),
	)
}

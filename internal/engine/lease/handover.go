package lease

import (
	"cmp"
	"context"
	"runtime/debug"

	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// handover gives tasks whose processors have passed them on to the holders of their lease tokens. The row stays
// executing at its version. For every node it is then like a popped one: no node renews its lease, and its end spends
// the attempt.
type handover struct {
	*deps
	holders *holders
	queue   *batch.Coalescer[*transfer]
	apart   *table.Apart[*transfer]
}

// transfer is a task on its way from a processor to the holder of its lease token.
type transfer struct {
	attempt *run.Attempt
	lease   row.Lease
	tries   int // that met a lock
}

func newHandover(c *deps, holders *holders) *handover {
	h := &handover{deps: c, holders: holders}
	h.apart = table.NewApart(c.Table, table.ApartConfig[*transfer]{
		Groups: func(p *transfer) []string { return []string{p.attempt.Row.Tag} },
		Write:  h.write, LeaveOut: h.leaveLocked,
		Size: func(**transfer) int { return 0 }, MaxRows: run.SettleRows, MaxBytes: run.SettleBytes,
	})
	h.queue = batch.New(batch.Config[*transfer]{Flush: h.flush, Panicked: h.panicked, MaxItems: run.SettleRows})
	return h
}

// HandOn takes the task over. Its slot is free at once. Its lease is not renewed after this, because a renewal would
// give it the length of the processor's.
func (h *handover) HandOn(a *run.Attempt, asked *processor.HandOverError) {
	h.runqueue.Yield(a.Item, runqueue.Slot)
	a.HandOver()
	start, late := a.FirstStart()
	t := &transfer{attempt: a, lease: row.Lease{
		Ref: row.Ref{ID: a.Row.ID, Version: a.Row.Version}, TTR: cmp.Or(asked.TTR, a.Row.TTR), Least: asked.TTR == 0,
		Executor: a.Row.Executor.ForPop(), Execution: start, Late: late,
	}}
	if h.cfg.AtOnce {
		h.flush([]*transfer{t})
		return
	}
	_ = h.queue.Add(t) // refused when the engine has ended; then a rescue ends the attempt
}

// flush writes until every row is handed over or belongs to another process. It waits for renewals in flight first,
// which must not come after it.
func (h *handover) flush(all []*transfer) {
	h.Metrics.Batch("handover", len(all))
	h.pool.Renewed()
	for n := 0; len(all) > 0 && h.Life.Err() == nil; n++ {
		if n > 0 {
			lifecycle.Sleep(h.Life, lifecycle.Backoff(n-1))
		}
		all = h.apart.Send(all)
	}
}

// write sends the rows once and returns those that have to be sent again. locked takes them when the statement has met
// a lock.
func (h *handover) write(
	ctx context.Context, all []*transfer, locked func([]*transfer) []*transfer,
) (again []*transfer) {
	leases := make([]row.Lease, len(all))
	for i, p := range all {
		leases[i] = p.lease
	}
	states, err := h.Store.Renew(ctx, leases)
	if err != nil {
		h.Failed("handing tasks over", err)
		return table.Policy[*transfer]{
			Locked: locked,
			Refused: func(all []*transfer) []*transfer {
				h.leave(all, "err", err)
				return nil
			},
		}.After(all, err)
	}
	byID := row.StatesByID(states)
	for _, p := range all {
		s, exists := byID[p.lease.ID]
		held := exists && s.Version == p.lease.Version && s.Status == row.Executing
		if !held || !h.holders.adopt(p, s.Due) {
			h.runqueue.Release(p.attempt.Item, runqueue.Ended) // as a rule the holder of the token has ended it by now
		}
		h.pool.Attempts.Remove(p.attempt)
	}
	return nil
}

// leaveLocked lets the rows wait that other transactions hold, and returns the others.
func (h *handover) leaveLocked(ctx context.Context, all []*transfer) (rest []*transfer) {
	locked, rest, _ := table.SplitLocked(ctx, h.Table, all, func(p *transfer) int64 { return p.lease.ID })
	for _, p := range locked {
		p.tries++
		// Others on probation must not wait for that transaction.
		h.runqueue.Yield(p.attempt.Item, runqueue.Slot|runqueue.Turn)
		h.Go(func() {
			if lifecycle.Sleep(h.Life, table.LockBackoff(p.tries)) {
				h.flush([]*transfer{p})
			}
		})
	}
	return rest
}

func (h *handover) panicked(all []*transfer, value any) {
	h.leave(all, "panic", value, "stack", string(debug.Stack()))
}

// leave lets go of tasks that cannot be handed over. They run again when their leases are over.
func (h *handover) leave(all []*transfer, why ...any) {
	h.Log.Error("tasks could not be handed over; they run again when their leases are over", why...)
	for _, p := range all {
		h.pool.Attempts.Remove(p.attempt)
		h.runqueue.Release(p.attempt.Item, runqueue.Ended)
	}
}

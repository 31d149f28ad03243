package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// settler writes the results of attempts. Results that arrive while a statement is in flight share the next one. A
// result is sent until it is stored or the fence refuses it.
type settler struct {
	*runDeps
	attempts *attempts
	queue    *batch.Coalescer[settlement]
	locked   lockedResults
}

// settlement is the result of an attempt, ready to be written.
type settlement struct {
	attempt *attempt
	change  row.Change
	kind    string // its name in the metrics
	err     error  // why the attempt failed, nil otherwise
	bare    bool   // its error text was dropped, because the database refused the result
}

// settleRows is how many results one statement writes.
const settleRows = 500

const (
	// settlePace bounds the statements of a stream of results, over all nodes together. No caller waits for a
	// result. At thousands of tasks a second, a statement for every two or three results would take the processors
	// from the tasks that are to start.
	settlePace  = 5 * time.Millisecond
	settleBytes = 4 << 20
	settleQueue = 64 << 20
)

func newSettler(c *runDeps, attempts *attempts) *settler {
	s := &settler{runDeps: c, attempts: attempts}
	s.locked.settler = s
	s.queue = batch.New(batch.Config[settlement]{
		Flush: s.flush, Panicked: s.panicked,
		Pace: func() time.Duration { return settlePace * time.Duration(c.arm.paceFactor()) },
		// A batch that waits for a lock holds up no more than the next one.
		Flushers: 2, MoreAt: settleRows,
		MaxItems: settleRows, MaxBytes: settleBytes, QueueBytes: settleQueue, Size: settlement.size,
	})
	return s
}

func (s settlement) id() int64 { return s.change.ID }

func (s settlement) size() int { return 256 + len(s.change.ErrorStack) + len(s.change.Errors) }

// add queues a result and frees its slot. While the queue is full it waits.
func (s *settler) add(a *attempt, result settlement) {
	result.attempt = a
	if s.cfg.AtOnce {
		s.flush([]settlement{result})
		return
	}
	for n := 0; ; n++ {
		err := s.queue.Add(result)
		if err == nil {
			s.runqueue.Yield(a.item, runqueue.Slot)
			return
		}
		if errors.Is(err, batch.ErrClosed) || !lifecycle.Sleep(s.Life, lifecycle.Backoff(n)) {
			return
		}
	}
}

func (s *settler) close(ctx context.Context) error { return s.queue.Close(ctx) }

func (s *settler) flush(results []settlement) {
	s.Metrics.Batch("settle", len(results))
	finishTogether(results)
	for n := 0; len(results) > 0 && s.Life.Err() == nil; n++ {
		if n > 0 {
			lifecycle.Sleep(s.Life, lifecycle.Backoff(n-1))
		}
		results = s.write(results)
	}
}

// finishTogether gives the rows of a batch that become final one finish time. They do become final in the same moment,
// and a statement holds a value once that all its rows share.
func finishTogether(results []settlement) {
	var last row.Time
	for _, r := range results {
		last = max(last, r.change.Finish)
	}
	for i := range results {
		if c := &results[i].change; c.To.Final() {
			c.Finish, c.Due = last, last
		}
	}
}

// panicked drops results that a bug kept from being stored. Their leases end, and a rescue runs the tasks again.
func (s *settler) panicked(results []settlement, value any) {
	s.Log.Error("settling panicked", "panic", value, "stack", string(debug.Stack()))
	for _, r := range results {
		s.attempts.remove(r.attempt)
		s.runqueue.Release(r.attempt.item, runqueue.Ended)
	}
}

// write sends the results once and returns those that have to be sent again.
func (s *settler) write(results []settlement) (again []settlement) {
	changes := make([]row.Change, len(results))
	for i := range results {
		changes[i] = results[i].change
	}
	ctx, cancel := s.Call()
	defer cancel()
	applied, err := s.store.Update(ctx, nil, changes)
	if err == nil && applied == len(changes) {
		for _, r := range results {
			s.finish(r.attempt, r)
		}
		return nil
	}
	if err == nil {
		return s.findStored(results)
	}
	s.Failed("settling", err)
	return policy[settlement]{
		locked:  s.locked.leaveOut,
		refused: func(results []settlement) []settlement { return s.refusedAll(results, err) },
		lost:    s.findStored,
	}.after(results, err)
}

// findStored finds out which results are stored. A row at the next version that names our claim holds our result. The
// result of a row that is still as it was claimed is sent again. Any other row is another process's by now.
func (s *settler) findStored(results []settlement) (again []settlement) {
	ctx, cancel := s.Call()
	defer cancel()
	states, err := s.readBack(ctx, "reading back results", idsOf(results, settlement.id))
	if err != nil {
		return results
	}
	for _, r := range results {
		c := &r.change
		state, exists := states[c.ID]
		switch {
		case exists && state.Version == c.Version && state.Status == c.From:
			again = append(again, r)
		case exists && state.Version == c.Version+1 && state.Status == c.To && state.Executor == c.Executor:
			s.finish(r.attempt, r)
		case exists && state.Version == c.Version+1 && state.Status == row.Cancelled:
			r.attempt.lose(processor.ErrCancelled) // while its processor returned by itself
			s.fenced(r.attempt)
			s.confirmEnd(r.attempt)
		default:
			s.fenced(r.attempt)
		}
	}
	return again
}

// refusedAll finds the result that the database refuses for what it holds, and stores the transition without the error
// text: a task must not stay executing because that cannot be stored.
func (s *settler) refusedAll(results []settlement, err error) (again []settlement) {
	if len(results) > 1 {
		return eachAlone(results, s.write)
	}
	r := results[0]
	if r.bare {
		// The row is refused, whatever the result holds. The result is sent again by itself, so that no other waits for
		// it. Other tasks on probation must not wait until an operator mends that.
		s.runqueue.Yield(r.attempt.item, runqueue.Slot|runqueue.Turn)
		s.Go(func() {
			if lifecycle.Sleep(s.Life, refusedFor) {
				s.flush(results)
			}
		})
		return nil
	}
	r.bare = true
	s.Log.Error("a result could not be stored; its error text is dropped", "task", r.change.ID, "err", err)
	r.change.ErrorStack, r.change.Errors = "the error could not be stored: "+row.Shorten(err.Error(), 200), nil
	return []settlement{r}
}

// refusedFor is how long a result waits whose row is refused.
const refusedFor = 5 * time.Second

// finish is what follows a stored result.
func (s *settler) finish(a *attempt, r settlement) {
	s.attempts.remove(a)
	why := runqueue.Ended
	if a.hasRun() && r.change.To.Final() {
		why = runqueue.Proven
	}
	s.runqueue.Release(a.item, why)
	s.stored(&a.row, a.due, &r)
}

// fenced is what follows a result that the fence has refused.
func (s *settler) fenced(a *attempt) {
	s.attempts.remove(a)
	s.runqueue.Release(a.item, runqueue.Ended)
	switch _, lease, _ := a.state(); lease {
	case leaseAnswered:
		return // and counted
	case leaseCancelled:
		s.Metrics.Run(a.row.Tag, metrics.RunCancelled)
		return
	}
	s.Metrics.Run(a.row.Tag, metrics.RunLeaseLost)
	s.Log.Warn("lease lost: the result of a late attempt is refused", "task", a.row.ID, "tag", a.row.Tag,
		"version", a.row.Version, "attempt", a.row.Attempt, "err", processor.ErrLeaseLost)
}

// stored does what follows the end of an attempt that this process has stored: of one that ran here, of one that its
// holder has ended, and of one whose lease a holder let end. A cancel, a rescue and a row that cannot be decoded end no
// attempt of this process. They are reported where they are stored. The row is as it was before, and is not owned any
// more. It was due at a moment that hooks are told.
func (s *settler) stored(r *row.Row, due row.Time, of *settlement) {
	s.Metrics.Run(r.Tag, of.kind)
	switch of.change.To {
	case row.Completed:
		s.tell(processor.EventCompleted, r, nil)
	case row.Cancelled:
		s.tell(processor.EventCancelled, r, of.err)
	case row.Failed:
		s.tell(processor.EventFailed, r, of.err)
		s.taskFailed(r, due, of.err)
	case row.Pending:
		if of.change.Attempt == r.Attempt { // a release and a snooze take the attempt back
			s.tell(processor.EventRetried, r, of.err)
			s.Metrics.Retried(r.Tag)
			s.attemptFailed(r, of.err, of.change.Due)
		}
		s.arm.Written(afterChange(r, of.change))
	}
}

// confirmEnd tells that the processor of a cancelled run has returned, or was not called. At the end of the grace of a
// stop tasks are released while their processors go on.
func (s *settler) confirmEnd(a *attempt) {
	at, lease, _ := a.state()
	if a.row.TickOf == nil || lease != leaseCancelled || at != claimed && at != returned {
		return
	}
	s.Go(func() {
		s.confirmed(s.Life, a.row.TickOf, a.row.ID)
	})
}

// lockedResults keeps results whose rows another transaction holds. It asks for all of them in one question, and has
// those written that are free: a write that waits for a lock would hold up the results of others.
type lockedResults struct {
	settler *settler

	mu      sync.Mutex // guards what follows; innermost
	waiting []settlement
	asking  bool
}

// leaveOut takes the locked ones out of the results and returns the others.
func (l *lockedResults) leaveOut(results []settlement) (rest []settlement) {
	s := l.settler
	ctx, cancel := s.Call()
	defer cancel()
	held, rest, _ := splitLocked(ctx, s.table, results, settlement.id)
	if len(held) == 0 {
		return rest
	}
	for _, r := range held {
		// Other tasks on probation must not wait for another process's transaction.
		s.runqueue.Yield(r.attempt.item, runqueue.Slot|runqueue.Turn)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, held...)
	if !l.asking {
		l.asking = true
		s.Go(l.ask)
	}
	return rest
}

// ask asks which rows are locked, at growing intervals, until no result is left.
func (l *lockedResults) ask() {
	s := l.settler
	for n := 0; lifecycle.Sleep(s.Life, lockBackoff(n)); n++ {
		l.mu.Lock()
		waiting := l.waiting
		l.waiting = nil
		l.asking = len(waiting) > 0
		l.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		ctx, cancel := s.Call()
		held, free, err := splitLocked(ctx, s.table, waiting, settlement.id)
		cancel()
		if err != nil {
			held, free = waiting, nil
		}
		l.mu.Lock()
		if len(l.waiting) > 0 {
			n = 0 // new ones have come, and theirs may be a short lock
		}
		l.waiting = append(l.waiting, held...)
		l.mu.Unlock()
		if len(free) > 0 {
			s.Go(func() { s.flush(free) })
		}
	}
}

// failed is an unsuccessful attempt: the error and the attempt are kept with the row.
func failed(a *attempt, to row.Status, now row.Time, err error, kind string) settlement {
	c := changeOf(&a.row, to)
	c.Due, c.Finish = now, now
	c.Execution, c.Late = a.firstStart()
	text := fmt.Sprint(err)
	c.ErrorStack = text
	if panicked, ok := errors.AsType[*processor.PanicError](err); ok {
		c.ErrorStack += "\n\n" + string(panicked.Stack)
		kind = metrics.RunPanicked
	}
	c.Errors = row.AppendAttempt(a.row.Errors, row.Attempt{
		N: a.row.Attempt, Due: a.due.Std(), Started: a.started.Std(), Finished: now.Std(), Executor: a.row.Executor,
		Error: text,
	})
	return settlement{attempt: a, change: c, kind: kind, err: err}
}

// released gives the task back as it was before the claim. It spends no attempt and moves the due time no earlier.
func released(a *attempt, now row.Time) settlement {
	c := releaseOf(&a.row, max(a.due, now))
	c.Execution, c.Late = a.firstStart()
	return settlement{attempt: a, change: c, kind: metrics.RunReleased}
}

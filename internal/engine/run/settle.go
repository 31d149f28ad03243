package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// Settler writes the results of attempts. Results that arrive while a statement is in flight share the next one. A
// result is sent until it is stored or the fence refuses it.
type Settler struct {
	*deps
	attempts *Attempts
	queue    *batch.Coalescer[Settlement]
	locked   lockedResults
	apart    *table.Apart[Settlement]
}

// Settlement is the result of an attempt, ready to be written.
type Settlement struct {
	attempt *Attempt
	Change  row.Change
	Kind    string // its name in the metrics
	Err     error  // why the attempt failed, nil otherwise
	bare    bool   // its error text was dropped, because the database refused the result
	awaited bool   // it has waited for a renewal
}

// SettleRows is how many results one statement writes.
const SettleRows = 500

const (
	// settlePace bounds the statements of a stream of results, over all nodes together. No caller waits for a
	// result. At thousands of tasks a second, a statement for every two or three results would take the processors
	// from the tasks that are to start.
	settlePace  = 5 * time.Millisecond
	SettleBytes = 4 << 20 // of errors in one statement
	settleQueue = 64 << 20
)

func newSettler(c *deps, attempts *Attempts) *Settler {
	s := &Settler{deps: c, attempts: attempts}
	s.locked.settler = s
	s.apart = table.NewApart(c.Table, table.ApartConfig[Settlement]{
		Groups: func(r Settlement) []string { return []string{r.attempt.Row.Tag} },
		Write:  s.write, LeaveOut: s.locked.leaveOut,
		Size: (*Settlement).Size, MaxRows: SettleRows, MaxBytes: SettleBytes,
	})
	s.queue = batch.New(batch.Config[Settlement]{
		Flush: s.flush, Panicked: s.panicked,
		Pace: func() time.Duration { return settlePace * time.Duration(c.arm.PaceFactor()) },
		// A batch that waits for a lock holds up no more than the next one.
		Flushers: 2, MoreAt: SettleRows,
		MaxItems: SettleRows, MaxBytes: SettleBytes, QueueBytes: settleQueue, Size: Settlement.Size,
	})
	return s
}

func (s Settlement) id() int64 { return s.Change.ID }

// Size returns how many bytes the result takes in a statement.
func (s Settlement) Size() int { return 256 + len(s.Change.ErrorStack) + len(s.Change.Errors) }

// Add queues a result and frees its slot. While the queue is full it waits.
func (s *Settler) Add(a *Attempt, result Settlement) {
	result.attempt = a
	if s.cfg.AtOnce {
		s.flush([]Settlement{result})
		return
	}
	for n := 0; ; n++ {
		err := s.queue.Add(result)
		if err == nil {
			s.runqueue.Yield(a.Item, runqueue.Slot)
			return
		}
		if errors.Is(err, batch.ErrClosed) || !lifecycle.Sleep(s.Life, lifecycle.Backoff(n)) {
			return
		}
	}
}

func (s *Settler) flush(results []Settlement) {
	s.Metrics.Batch("settle", len(results))
	finishTogether(results)
	for n := 0; len(results) > 0 && s.Life.Err() == nil; n++ {
		if n > 0 {
			lifecycle.Sleep(s.Life, lifecycle.Backoff(n-1))
		}
		results = s.apart.Send(results)
	}
}

// finishTogether gives the rows of a batch that become final one finish time. They do become final in the same moment,
// and a statement holds a value once that all its rows share.
func finishTogether(results []Settlement) {
	var last row.Time
	for _, r := range results {
		if r.Change.To.Final() {
			last = max(last, r.Change.Due)
		}
	}
	for i := range results {
		if c := &results[i].Change; c.To.Final() {
			c.Due = last
		}
	}
}

// panicked drops results that a bug kept from being stored. Their leases end, and a rescue runs the tasks again.
func (s *Settler) panicked(results []Settlement, value any) {
	s.Log.Error("settling panicked", "panic", value, "stack", string(debug.Stack()))
	for _, r := range results {
		s.attempts.Remove(r.attempt)
		s.runqueue.Release(r.attempt.Item, runqueue.Ended)
	}
}

// write sends the results once and returns those that have to be sent again. locked takes them when the statement has
// met a lock.
func (s *Settler) write(
	ctx context.Context, results []Settlement, locked func([]Settlement) []Settlement,
) (again []Settlement) {
	if results = s.afterRenewals(results); len(results) == 0 {
		return nil
	}
	changes := make([]row.Change, len(results))
	for i := range results {
		changes[i] = results[i].Change
		results[i].attempt.beginSettling()
	}
	applied, err := s.Store.Update(ctx, nil, changes)
	for _, r := range results {
		r.attempt.endSettling()
	}
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
	return table.Policy[Settlement]{
		Locked:  locked,
		Refused: func(results []Settlement) []Settlement { return s.refusedAll(results, err) },
		Lost:    s.findStored,
	}.After(results, err)
}

// afterRenewals takes out the results of attempts whose leases are being renewed, and sends each after that.
func (s *Settler) afterRenewals(results []Settlement) (rest []Settlement) {
	for _, r := range results {
		renewal := r.attempt.renewalInFlight()
		if renewal == nil || r.awaited {
			rest = append(rest, r)
			continue
		}
		r.awaited = true
		s.Go(func() {
			select {
			case <-renewal:
			case <-time.After(r.attempt.ownWait()):
			}
			if s.queue.Add(r) != nil { // it is full, or has ended
				s.flush([]Settlement{r})
			}
		})
	}
	return rest
}

// findStored finds out which results are stored. A row at the next version that names our claim holds our result. The
// result of a row that is still as it was claimed is sent again. Any other row is another process's by now.
func (s *Settler) findStored(results []Settlement) (again []Settlement) {
	ctx, cancel := s.Call()
	defer cancel()
	states, err := s.ReadBack(ctx, "reading back results", row.IDsOf(results, Settlement.id))
	if err != nil {
		return results
	}
	for _, r := range results {
		c := &r.Change
		state, exists := states[c.ID]
		switch {
		case exists && state.Version == c.Version && state.Status == c.From:
			again = append(again, r)
		case exists && state.Version == c.Version+1 && state.Status == c.To && state.Executor == c.Executor:
			s.finish(r.attempt, r)
		case exists && state.Version == c.Version+1 && state.Status == row.Cancelled:
			r.attempt.lose(delaytask.ErrCancelled) // while its processor returned by itself
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
func (s *Settler) refusedAll(results []Settlement, err error) (again []Settlement) {
	if len(results) > 1 {
		return table.EachAlone(results, s.apart.Send)
	}
	r := results[0]
	if r.bare {
		// The row is refused, whatever the result holds. The result is sent again by itself, so that no other waits for
		// it. Other tasks on probation must not wait until an operator mends that.
		s.runqueue.Yield(r.attempt.Item, runqueue.Slot|runqueue.Turn)
		s.Go(func() {
			if lifecycle.Sleep(s.Life, refusedFor) {
				s.flush(results)
			}
		})
		return nil
	}
	r.bare = true
	s.Log.Error("a result could not be stored; its error text is dropped", "task", r.Change.ID, "err", err)
	r.Change.ErrorStack, r.Change.Errors = "the error could not be stored: "+row.Shorten(err.Error(), 200), nil
	return []Settlement{r}
}

// refusedFor is how long a result waits whose row is refused.
const refusedFor = 5 * time.Second

// finish is what follows a stored result.
func (s *Settler) finish(a *Attempt, r Settlement) {
	s.attempts.Remove(a)
	why := runqueue.Ended
	if a.hasRun() && r.Change.To.Final() {
		why = runqueue.Proven
	}
	s.runqueue.Release(a.Item, why)
	s.Stored(&a.Row, a.Due, &r)
}

// fenced is what follows a result that the fence has refused.
func (s *Settler) fenced(a *Attempt) {
	s.attempts.Remove(a)
	s.runqueue.Release(a.Item, runqueue.Ended)
	switch _, lease, _ := a.state(); lease {
	case leaseAnswered:
		return // and counted
	case leaseCancelled:
		s.Metrics.Run(a.Row.Tag, metrics.RunCancelled)
		return
	}
	s.Metrics.Run(a.Row.Tag, metrics.RunLeaseLost)
	s.Log.Warn("lease lost: the result of a late attempt is refused", "task", a.Row.ID, "tag", a.Row.Tag,
		"version", a.Row.Version, "attempt", a.Row.Attempt, "err", delaytask.ErrLeaseLost)
}

// Refused ends an attempt that comes too late to begin, and reports whether it does, and the error of the task. A run
// of a schedule that may be taken back is given back when that cannot be found out.
func (s *Settler) Refused(a *Attempt, now row.Time) (refused bool, err error) {
	if a.Row.TickOf != nil && a.Row.Execution.IsZero() && a.Row.Attempt == 1 && a.Row.CrashCount == 0 {
		asks := a.Row
		asks.Due = a.Due
		taken, err := s.TakenBack(s.Life, &asks, now)
		if err != nil {
			s.Add(a, Released(a, now))
			return true, nil
		}
		if taken {
			s.attempts.Remove(a)
			s.runqueue.Release(a.Item, runqueue.Ended)
			s.Metrics.Run(a.Row.Tag, metrics.RunSkippedLate)
			return true, nil
		}
	}
	of, late := tooLate(a, now)
	if late {
		s.Add(a, of)
	}
	return late, of.Err
}

// Stored does what follows the end of an attempt that this process has stored: of one that ran here, of one that its
// holder has ended, and of one whose lease a holder let end. A cancel, a rescue and a row that cannot be decoded end no
// attempt of this process. They are reported where they are stored. The row is as it was before, and is not owned any
// more. It was due at a moment that hooks are told.
func (s *Settler) Stored(r *row.Row, due row.Time, of *Settlement) {
	s.Metrics.Run(r.Tag, of.Kind)
	switch of.Change.To {
	case row.Completed:
		s.Tell(delaytask.EventCompleted, r, nil)
	case row.Cancelled:
		s.Tell(delaytask.EventCancelled, r, of.Err)
	case row.Failed:
		s.Tell(delaytask.EventFailed, r, of.Err)
		s.TaskFailed(r, due, of.Err)
	case row.Pending:
		if of.Change.Attempt == r.Attempt { // a release and a snooze take the attempt back
			s.Tell(delaytask.EventRetried, r, of.Err)
			s.Metrics.Retried(r.Tag)
			s.AttemptFailed(r, of.Err, of.Change.Due)
		}
		s.arm.Written(table.AfterChange(r, of.Change))
	}
}

// confirmEnd tells that the processor of a cancelled run has returned, or was not called. At the end of the grace of a
// stop tasks are released while their processors go on.
func (s *Settler) confirmEnd(a *Attempt) {
	at, lease, _ := a.state()
	if a.Row.TickOf == nil || lease != leaseCancelled || at != claimed && at != returned {
		return
	}
	s.Go(func() {
		s.Confirmed(s.Life, a.Row.TickOf, a.Row.ID)
	})
}

// yieldTurns lets others run: tasks on probation must not wait for another process's transaction.
func (s *Settler) yieldTurns(results []Settlement) {
	for _, r := range results {
		s.runqueue.Yield(r.attempt.Item, runqueue.Slot|runqueue.Turn)
	}
}

// lockedResults keeps results whose rows another transaction holds. It asks for all of them in one question, and has
// those written that are free: a write that waits for a lock would hold up the results of others.
type lockedResults struct {
	settler *Settler

	mu      sync.Mutex // guards what follows; innermost
	waiting []Settlement
	asking  bool
}

// leaveOut takes the locked ones out of the results and returns the others.
func (l *lockedResults) leaveOut(ctx context.Context, results []Settlement) (rest []Settlement) {
	s := l.settler
	held, rest, _ := table.SplitLocked(ctx, s.Table, results, Settlement.id)
	if len(held) == 0 {
		s.yieldTurns(results) // a range is locked: each of them may wait
		return rest
	}
	s.yieldTurns(held)
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
	for n := 0; lifecycle.Sleep(s.Life, table.LockBackoff(n)); n++ {
		l.mu.Lock()
		waiting := l.waiting
		l.waiting = nil
		l.asking = len(waiting) > 0
		l.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		ctx, cancel := s.Call()
		held, free, err := table.SplitLocked(ctx, s.Table, waiting, Settlement.id)
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
func failed(a *Attempt, to row.Status, now row.Time, err error, kind string) Settlement {
	c := table.ChangeOf(&a.Row, to)
	c.Due = now
	c.Execution, c.Late = a.FirstStart()
	text := fmt.Sprint(err)
	c.ErrorStack = text
	if panicked, ok := errors.AsType[*processor.PanicError](err); ok {
		c.ErrorStack += "\n\n" + string(panicked.Stack)
		kind = metrics.RunPanicked
	}
	c.Errors = row.AppendAttempt(a.Row.Errors, row.Attempt{
		N: a.Row.Attempt, Due: a.Due.Std(), Started: a.started.Std(), Finished: now.Std(), Error: text,
		Executor: a.Row.Executor.At(a.Row.Process),
	})
	return Settlement{attempt: a, Change: c, Kind: kind, Err: err}
}

// Released gives the task back as it was before the claim. It spends no attempt and moves the due time no earlier.
func Released(a *Attempt, now row.Time) Settlement {
	c := table.ReleaseOf(&a.Row, max(a.Due, now))
	c.Execution, c.Late = a.FirstStart()
	return Settlement{attempt: a, Change: c, Kind: metrics.RunReleased}
}

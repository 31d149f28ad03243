// Package run claims tasks, runs their processors at their due times, and stores their results.
//
//	pool.go      holds the parts together, from the start to the end of the grace of a stop
//	claimer.go   claims rows that have a slot, many in one guarded statement; claimfailed.go takes its errors,
//	             claimapart.go claims tags by themselves of which a range is locked
//	dispatch.go  starts each claimed task at its exact due time
//	run.go       runs the processor, and turns what it returns into a result
//	attempt.go   has the states of a claimed row
//	lateness.go  measures how late a start is, and finds out why
//	settle.go    writes results, many in one statement, fenced by the version, and does what follows them
//	renew.go     renews leases, and ends attempts that have lost theirs; hanging.go knows the processors that go on
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// runner runs processors.
type runner struct {
	*deps
	Attempts *Attempts
	Settler  *Settler
	holders  Holders
	base     context.Context // the parent of every processor's context; ends with the grace of a stop
}

// Holders take tasks that this process has claimed and that others work on.
type Holders interface {
	// Deliver hands a claimed task to the caller of a pop.
	Deliver(a *Attempt)
	// HandOn gives a task from its processor to the holder of its lease token.
	HandOn(a *Attempt, asked *processor.HandOverError)
}

// begin runs the task in a goroutine of its own, as soon as there is a slot. A stop does not wait for this goroutine as
// for the engine's own, because a processor may ignore that its context has ended.
func (r *runner) begin(a *Attempt) {
	a.Item.Attempt = a
	if r.runqueue.Slots.Enter(a.Item) {
		go r.work(a)
	}
}

// work runs the task, and then those that wait for its slot.
func (r *runner) work(a *Attempt) {
	defer func() {
		if a != nil { // the processor has called runtime.Goexit
			r.leave(a)
		}
	}()
	for a != nil {
		_ = r.execute(a) // the result is on its way to the table
		next := r.runqueue.Slots.Leave(a.Item)
		a = nil
		if len(next) > 0 {
			a = attemptOf(next[0])
			r.beginAll(next[1:])
		}
	}
}

// leave hands on the slot of a task whose goroutine does not.
func (r *runner) leave(a *Attempt) { r.beginAll(r.runqueue.Slots.Leave(a.Item)) }

func (r *runner) beginAll(admitted []*runqueue.Item) {
	for _, it := range admitted {
		go r.work(attemptOf(it))
	}
}

// attemptOf returns the attempt of a row that has asked for a slot.
func attemptOf(it *runqueue.Item) *Attempt { return it.Attempt.(*Attempt) }

// execute runs the task, hands its result on, and returns the error of the processor.
func (r *runner) execute(a *Attempt) (err error) {
	reg, ok := r.cfg.Registry.Lookup(a.Row.Tag)
	now := max(r.Now(), a.Due) // the clock may have lost its anchor since the task was due
	if !ok || r.base.Err() != nil || a.isOver() {
		r.Settler.Add(a, Released(a, now))
		return nil
	}
	if refused, err := r.Settler.Refused(a, now); refused {
		return err
	}
	ctx, end := r.context(a, &reg, now)
	began := time.Now()
	err = errGoexit
	defer func() {
		r.Metrics.Ran(a.Row.Tag, time.Since(began))
		cause := context.Cause(ctx)
		end(nil)
		r.settle(a, &reg, err, cause)
		r.Settler.confirmEnd(a)
	}()
	err = r.process(ctx, a, reg.Processor)
	return err
}

// started notes that the attempt was handed to a receiver that can run it, and measures how late.
func (r *runner) started(a *Attempt) {
	if now := max(r.Now(), a.Due); a.start(now) {
		r.begun(a, now)
	}
}

// settle hands the result on. After CompleteTx only the row decides. The result of a disowned attempt is dropped.
// Otherwise it could share a statement with the result of the next attempt.
func (r *runner) settle(a *Attempt, reg *processor.Registration, err, cause error) {
	asked := askedFor(err)
	if err == nil || asked != nil {
		r.started(a)
	}
	by, disowned := a.finish()
	if disowned {
		r.Settler.fenced(a)
		return
	}
	if by == byTransaction {
		r.askRow(a, reg, err, cause)
		return
	}
	if asked != nil {
		r.holders.HandOn(a, asked)
		return
	}
	now, closed := r.Certain(r.Life)
	if closed != nil {
		return // the lease ends, and a rescue runs the task again
	}
	r.Settler.Add(a, r.Judge(a, reg, now, err, cause))
}

// Judge is outcome, guarded against panics of a user's error or backoff.
func (r *runner) Judge(a *Attempt, reg *processor.Registration, now row.Time, err, cause error) (s Settlement) {
	defer func() {
		if v := recover(); v != nil {
			panicked := fmt.Errorf("the processor's error or the backoff of its tag panicked: %v", v)
			s = r.failure(a, now, panicked, processor.DefaultBackoff)
		}
	}()
	return r.outcome(a, reg, now, err, cause)
}

// context makes the processor's context, which carries the lease and ends with the attempt's timeout. It notes that the
// attempt starts, unless the processor forwards it.
func (r *runner) context(
	a *Attempt, reg *processor.Registration, now row.Time,
) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(processor.WithLease(r.base, &lease{runner: r, attempt: a}))
	timeout := cmp.Or(reg.Timeout, r.cfg.Timeout)
	if reg.NoTimeout {
		timeout = 0
	}
	a.began = now
	if !reg.Forwards {
		r.begun(a, now)
	}
	started, quietAt := now, time.Time{}
	if reg.Forwards {
		started = 0
	}
	if timeout > 0 {
		quietAt = time.Now().Add(timeout + r.cfg.StopGrace)
	}
	a.call(end, quietAt, started)
	if timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = r.cfg.WithTimeout(ctx, timeout, delaytask.ErrTimeout)
		return ctx, func(cause error) { end(cause); stop() }
	}
	return ctx, end
}

// process calls the processor. A panic becomes an error. After a call of runtime.Goexit the caller's error stays
// errGoexit.
func (r *runner) process(ctx context.Context, a *Attempt, p processor.Processor) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &processor.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	labels := pprof.Labels(labelTag, a.Row.Tag, labelTask, strconv.FormatInt(a.Row.ID, 10))
	pprof.Do(ctx, labels, func(ctx context.Context) { err = p.Process(ctx, events.TaskOf(&a.Row, a.Due)) })
	return err
}

var errGoexit = errors.New("the processor ended its goroutine with runtime.Goexit")

// errNotCommitted is the error of an attempt that has called CompleteTx without committing the transaction.
var errNotCommitted = errors.New("CompleteTx was called but its transaction was not committed")

// askRow settles an attempt that has called CompleteTx. It has failed unless the row is completed.
func (r *runner) askRow(a *Attempt, reg *processor.Registration, err, cause error) {
	failure := errors.Join(errNotCommitted, err)
	for n := 0; ; n++ {
		ctx, cancel := r.Call()
		states, readErr := r.Store.States(ctx, []int64{a.Row.ID})
		cancel()
		switch {
		case readErr != nil:
			r.Failed("reading a task that was completed in a transaction", readErr)
			if !lifecycle.Sleep(r.Life, lifecycle.Backoff(n)) {
				return
			}
			continue
		case len(states) == 1 && states[0].Status == row.Completed && states[0].Version == a.Row.Version+1:
			r.Settler.finish(a, Settlement{Change: row.Change{To: row.Completed}, Kind: metrics.RunCompleted})
		case len(states) == 1 && states[0].Status == row.Executing && states[0].Version == a.Row.Version:
			if now, err := r.Certain(r.Life); err == nil {
				r.Settler.Add(a, r.Judge(a, reg, now, failure, cause))
			}
		default:
			r.Settler.fenced(a)
		}
		return
	}
}

// begun reports that an attempt was handed to a receiver that can run it.
func (r *runner) begun(a *Attempt, now row.Time) {
	a.noteLate(r.Measure(a, now))
	r.Tell(delaytask.EventStarted, &a.Row, nil)
}

// tooLate decides about a task whose claim came later than it allows. The claim of an executor that has died tells of
// a start. When it came too late, it was none.
func tooLate(a *Attempt, now row.Time) (Settlement, bool) {
	if s, past := pastNextTick(a, now); past {
		return s, true
	}
	late := now.Sub(a.expected())
	if noStart := a.Row.Execution.Sub(a.Row.Expected); a.Row.CrashCount > 0 && noStart > a.Row.MaxLate {
		late = max(late, noStart)
	}
	if a.Row.LatePolicy == delaytask.LateRun || a.Row.MaxLate == 0 || late <= a.Row.MaxLate {
		return Settlement{}, false
	}
	reason := fmt.Errorf("claimed %v after it was due, over its max lateness of %v",
		late.Round(time.Millisecond), a.Row.MaxLate)
	s := failed(a, row.Cancelled, now, reason, metrics.RunSkippedLate)
	if a.Row.LatePolicy == delaytask.LateFail {
		s = failed(a, row.Failed, now, reason, metrics.RunFailedLate)
	}
	if a.Row.Execution.Sub(a.Row.Expected) > a.Row.MaxLate {
		s.Change.Execution = 0
	}
	return s, true
}

// errPastNextTick is why a run of a schedule is not tried again.
var errPastNextTick = errors.New("no further attempt, because it would begin after the next tick of its schedule")

// pastNextTick fails a run whose further attempt comes after the next tick, as when it has waited through an outage.
// The attempt is not spent.
func pastNextTick(a *Attempt, now row.Time) (Settlement, bool) {
	if a.Row.Attempt == 1 && a.Row.CrashCount == 0 || !a.Row.TickOf.Past(now) {
		return Settlement{}, false
	}
	before, _, _ := strings.Cut(a.Row.ErrorStack, "\n")
	err := fmt.Errorf("%s; %w", before, errPastNextTick)
	c := table.ChangeOf(&a.Row, row.Failed)
	c.Due, c.Attempt, c.ErrorStack = a.Row.TickOf.End(now), a.Row.Attempt-1, err.Error()
	return Settlement{attempt: a, Change: c, Kind: metrics.RunFailed, Err: err}, true
}

// Every processor runs under these labels of runtime/pprof. They show in profiles, and stackOf finds a processor by
// them.
const (
	labelTag  = "delaytask_tag"
	labelTask = "delaytask_task"
)

// stackOf returns where the task's processor is, or "" when it has returned.
func stackOf(a *Attempt) string { return stacks().of(a) }

// lease is what a processor's context carries.
type lease struct {
	runner  *runner
	attempt *Attempt
}

// CompleteTx implements [processor.Lease]. From then on the row is neither renewed nor settled, because the caller's
// transaction holds its lock.
func (l *lease) CompleteTx(ctx context.Context, tx delaytask.Tx) error {
	a := l.attempt
	if err := store.InTransaction(ctx, l.runner.Store, tx); err != nil {
		return err
	}
	now, err := l.runner.Certain(ctx)
	if err != nil {
		return err
	}
	c := table.ChangeOf(&a.Row, row.Completed)
	c.Due = now
	c.Execution, c.Late = a.FirstStart()

	a.completeInTx()
	applied, err := l.runner.Store.Update(ctx, tx, []row.Change{c})
	if err != nil {
		return err
	}
	if applied == 0 {
		return delaytask.ErrLeaseLost
	}
	return nil
}

// Started implements [processor.Lease].
func (l *lease) Started() { l.runner.started(l.attempt) }

// unclaim releases rows that were claimed and did not start. They are released also when their lease is over here: the
// table may still show them as executing, and a rescue would count a crash. The fence refuses rows of other processes.
func (r *runner) unclaim(waiting []*runqueue.Item) {
	for _, it := range waiting {
		a := attemptOf(it)
		r.Settler.Add(a, Released(a, r.Now()))
	}
}

// outcome turns what a processor has returned into the transition of its row. The cause says why its context has ended,
// or is nil.
func (r *runner) outcome(a *Attempt, reg *processor.Registration, now row.Time, err, cause error) Settlement {
	if err == nil {
		c := table.ChangeOf(&a.Row, row.Completed)
		c.Due = now
		c.Execution, c.Late = a.FirstStart()
		return Settlement{attempt: a, Change: c, Kind: metrics.RunCompleted}
	}
	if errors.Is(cause, delaytask.ErrStopping) || errors.Is(cause, delaytask.ErrLeaseLost) {
		return Released(a, now)
	}
	if snooze, ok := errors.AsType[*processor.SnoozeError](err); ok {
		c := table.ReleaseOf(&a.Row, after(now, snooze.After))
		c.Execution, c.Late = a.FirstStart()
		return Settlement{attempt: a, Change: c, Kind: metrics.RunSnoozed}
	}
	if errors.Is(cause, delaytask.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) {
		err = delaytask.ErrTimeout
	}
	if _, ok := errors.AsType[*processor.PermanentError](err); ok {
		return r.clipped(failed(a, row.Failed, now, err, metrics.RunFailed))
	}
	return r.failure(a, now, err, r.backoff(reg, err))
}

// Complete is the result of a task that its holder has finished.
func (r *runner) Complete(a *Attempt, reg *processor.Registration, now row.Time) Settlement {
	return r.outcome(a, reg, now, nil, nil)
}

// failure settles an attempt that has ended with an error. Another one follows unless the attempts are used up.
func (r *runner) failure(a *Attempt, now row.Time, err error, backoff processor.Backoff) Settlement {
	if a.Row.MaxAttempts > 0 && a.Row.Attempt >= a.Row.MaxAttempts {
		return r.clipped(failed(a, row.Failed, now, err, metrics.RunFailed))
	}
	next := after(now, backoff(a.Row.Attempt))
	if a.Row.TickOf.Past(next) {
		return r.clipped(failed(a, row.Failed, now, fmt.Errorf("%w; %w", err, errPastNextTick), metrics.RunFailed))
	}
	s := failed(a, row.Pending, now, err, metrics.RunRetried)
	s.Change.Due = next
	return r.clipped(s)
}

// backoff returns how long the next attempt waits: as the error asks for, or the tag, or the configuration.
func (r *runner) backoff(reg *processor.Registration, err error) processor.Backoff {
	if asked, ok := errors.AsType[*processor.RetryAfterError](err); ok {
		return processor.Constant(asked.After)
	}
	if reg.Backoff != nil {
		return reg.Backoff
	}
	return r.cfg.Backoff
}

// after returns now plus the wait, within what the database can store.
func after(now row.Time, wait time.Duration) row.Time {
	return min(now.Add(max(wait, 0)), row.MaxTime-1)
}

// clipped adds the stacks that the error carries, and bounds the text to what is kept.
func (r *runner) clipped(s Settlement) Settlement {
	limit := r.cfg.ErrorLimit
	s.Change.ErrorStack = row.Shorten(s.Change.ErrorStack+row.Stacks(s.Err, limit), limit)
	return s
}

// askedFor returns what a processor asks for that has passed its task on, or nil for any other error. An error that
// panics counts as another error.
func askedFor(err error) (asked *processor.HandOverError) {
	defer func() {
		if recover() != nil {
			asked = nil
		}
	}()
	asked, _ = errors.AsType[*processor.HandOverError](err)
	return asked
}

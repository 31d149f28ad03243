package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/processor"
)

// runner runs processors.
type runner struct {
	*core
	runs    *attempts
	settler *settler
	passer  *handover
	base    context.Context // of every processor; ends when the grace of a stop has ended
}

// begin runs the task in a goroutine of its own, as soon as there is a slot. It is not waited for like the engine's own
// goroutines: a processor may ignore that its context has ended, and a stop must end all the same.
func (r *runner) begin(u *attempt) {
	u.item.Attempt = u
	if r.runqueue.Slots.Enter(u.item) {
		go r.work(u)
	}
}

// work runs the task, and then those that wait for its slot.
func (r *runner) work(u *attempt) {
	defer func() {
		if u != nil { // the processor has ended its goroutine
			r.leave(u)
		}
	}()
	for u != nil {
		r.execute(u)
		next := r.runqueue.Slots.Leave(u.item)
		u = nil
		if len(next) > 0 {
			u = attemptOf(next[0])
			r.beginAll(next[1:])
		}
	}
}

// leave hands the slot of a task on that will not, by itself.
func (r *runner) leave(u *attempt) { r.beginAll(r.runqueue.Slots.Leave(u.item)) }

func (r *runner) beginAll(admitted []*runqueue.Item) {
	for _, it := range admitted {
		go r.work(attemptOf(it))
	}
}

// attemptOf returns the attempt of a row that has asked for a slot.
func attemptOf(it *runqueue.Item) *attempt { return it.Attempt.(*attempt) }

func (r *runner) execute(u *attempt) {
	reg, ok := r.cfg.Registry.Lookup(u.row.Tag)
	now := max(r.now(), u.due) // it was due when it was begun, also when the clock has lost its anchor since
	if !ok || r.base.Err() != nil || u.isOver() {
		r.settler.add(u, released(u, now))
		return
	}
	if s, late := tooLate(u, now); late {
		r.settler.add(u, s)
		return
	}
	ctx, end := r.context(u, &reg, now)
	err := errGoexit
	defer func() {
		cause := context.Cause(ctx)
		end(nil)
		r.settle(u, &reg, err, cause)
	}()
	err = r.process(ctx, u, reg.Processor)
}

// start notes that the attempt was handed to a receiver that can run it, and measures how late.
func (r *runner) start(u *attempt) {
	if now := max(r.now(), u.due); u.start(now) {
		r.measure(u, now)
	}
}

// settle hands the result on. After CompleteTx only the row decides. The result of an attempt whose row was let go is
// not sent: it must not travel with that of the next one.
func (r *runner) settle(u *attempt, reg *processor.Registration, err, cause error) {
	asked := askedFor(err)
	if err == nil || asked != nil {
		r.start(u)
	}
	by, disowned := u.finish()
	if disowned {
		r.settler.refused(u)
		return
	}
	if by == byTransaction {
		r.askRow(u, reg, err, cause)
		return
	}
	if asked != nil {
		r.passer.add(u, asked)
		return
	}
	now, closed := r.certain(r.Life)
	if closed != nil {
		return // the lease ends, and a rescue runs the task again
	}
	r.settler.add(u, r.judge(u, reg, now, err, cause))
}

// judge is outcome, guarded against what a user's error or backoff may do when it is looked at.
func (r *runner) judge(u *attempt, reg *processor.Registration, now row.Time, err, cause error) (s settlement) {
	defer func() {
		if v := recover(); v != nil {
			panicked := fmt.Errorf("the processor's error or the backoff of its tag panicked: %v", v)
			s = r.failure(u, now, panicked, processor.DefaultBackoff)
		}
	}()
	return r.outcome(u, reg, now, err, cause)
}

// context makes the processor's context: it carries the lease, and ends with the attempt's timeout. With it the
// attempt starts, unless the processor hands it to others.
func (r *runner) context(u *attempt, reg *processor.Registration, now row.Time) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(processor.WithLease(r.base, &lease{runner: r, run: u}))
	timeout := cmp.Or(reg.Timeout, r.cfg.Timeout)
	if reg.NoTimeout {
		timeout = 0
	}
	u.began = now
	if !reg.Forwards {
		r.measure(u, now)
	}
	started, quietAt := now, time.Time{}
	if reg.Forwards {
		started = 0
	}
	if timeout > 0 {
		quietAt = time.Now().Add(timeout + r.cfg.StopGrace)
	}
	u.call(end, quietAt, started)
	if timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, timeout, processor.ErrTimeout)
		return ctx, func(cause error) { end(cause); stop() }
	}
	return ctx, end
}

// process calls the processor. A panic becomes an error; a call of runtime.Goexit leaves the caller's errGoexit
// standing.
func (r *runner) process(ctx context.Context, u *attempt, p processor.Processor) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &processor.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	labelled(ctx, u, func(ctx context.Context) { err = p.Process(ctx, taskOf(&u.row, u.due)) })
	return err
}

var errGoexit = errors.New("the processor ended its goroutine with runtime.Goexit")

// errNotCommitted is what an attempt fails with that called CompleteTx and left its transaction open or rolled it back.
var errNotCommitted = errors.New("CompleteTx was called but its transaction was not committed")

// askRow settles an attempt that called CompleteTx: when the row is completed it is done, otherwise the attempt has
// failed.
func (r *runner) askRow(u *attempt, reg *processor.Registration, err, cause error) {
	failure := errors.Join(errNotCommitted, err)
	for n := 0; ; n++ {
		ctx, cancel := r.Call()
		states, readErr := r.store.States(ctx, []int64{u.row.ID})
		cancel()
		switch {
		case readErr != nil:
			r.Failed("reading a task that was completed in a transaction", readErr)
			if !lifecycle.Sleep(r.Life, lifecycle.Backoff(n)) {
				return
			}
			continue
		case len(states) == 1 && states[0].Status == row.Completed && states[0].Version == u.row.Version+1:
			r.settler.finish(u, settlement{change: row.Change{To: row.Completed}, kind: metrics.RunCompleted})
		case len(states) == 1 && states[0].Status == row.Executing && states[0].Version == u.row.Version:
			if now, err := r.certain(r.Life); err == nil {
				r.settler.add(u, r.judge(u, reg, now, failure, cause))
			}
		default:
			r.settler.refused(u)
		}
		return
	}
}

// measure records how late the task starts that nobody was handed before, and where the time went.
func (r *runner) measure(u *attempt, started row.Time) {
	if !u.row.Execution.IsZero() {
		return
	}
	began := cmp.Or(u.began, started)
	sent, ready := started.Add(-time.Since(u.sent)), began
	if !u.item.Entered.IsZero() { // a popped task waits for no slot
		ready = started.Add(-time.Since(u.item.Entered))
	}
	fired, promised := max(u.item.Fired, u.due), u.promised()
	r.Metrics.Late(u.row.Tag, metrics.Lateness{
		Total: started.Sub(promised), Timer: fired.Sub(u.due), Claim: max(ready.Sub(max(sent, u.due)), 0),
		Pool: max(sent.Sub(fired), 0) + began.Sub(ready), Receiver: max(u.due.Sub(promised), 0) + started.Sub(began),
	})
}

// taskOf is what the processor sees of the row.
func taskOf(r *row.Row, due row.Time) *processor.Task {
	headers := row.DecodeHeaders(r.Headers)
	return &processor.Task{
		ID: r.ID, Tag: r.Tag, Key: row.OwnKey(headers[processor.AppHeader], r.Key), Body: r.Body, Attempt: r.Attempt,
		Version: r.Version, Expected: r.Expected.Std(), Due: due.Std(), Headers: headers, Priority: r.Priority,
	}
}

// tooLate decides about a task whose claim came later than it allows.
func tooLate(u *attempt, now row.Time) (settlement, bool) {
	late := now.Sub(u.promised())
	if u.row.LatePolicy == row.LateRun || u.row.MaxLate == 0 || late <= u.row.MaxLate {
		return settlement{}, false
	}
	reason := fmt.Errorf("claimed %v after it was due, over its max lateness of %v", late.Round(time.Millisecond), u.row.MaxLate)
	if u.row.LatePolicy == row.LateFail {
		return failed(u, row.Failed, now, reason, metrics.RunFailedLate), true
	}
	return failed(u, row.Cancelled, now, reason, metrics.RunSkippedLate), true
}

// Every processor runs under these labels of runtime/pprof: they show in profiles, and find the stack of one that does
// not return.
const (
	labelTag  = "delaytask_tag"
	labelTask = "delaytask_task"
)

func labels(u *attempt) pprof.LabelSet {
	return pprof.Labels(labelTag, u.row.Tag, labelTask, strconv.FormatInt(u.row.ID, 10))
}

// labelled calls f under the labels of the task.
func labelled(ctx context.Context, u *attempt, f func(context.Context)) {
	pprof.Do(ctx, labels(u), f)
}

// stackOf returns where the task's processor is, or "" when it has returned.
func stackOf(u *attempt) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return ""
	}
	label := []byte(strconv.Quote(labelTask) + ":" + strconv.Quote(strconv.FormatInt(u.row.ID, 10)))
	for stack := range bytes.SplitSeq(all.Bytes(), []byte("\n\n")) {
		if bytes.Contains(stack, label) {
			return string(stack)
		}
	}
	return ""
}

// lease is what a processor's context carries.
type lease struct {
	runner *runner
	run    *attempt
}

// CompleteTx implements [processor.Lease]. From here on the row leaves the renewal and settle batches: the caller's
// transaction holds its lock.
func (l *lease) CompleteTx(ctx context.Context, tx processor.Tx) error {
	u := l.run
	if err := save.InTransaction(ctx, l.runner.store, tx); err != nil {
		return err
	}
	now, err := l.runner.certain(ctx)
	if err != nil {
		return err
	}
	c := changeOf(&u.row, row.Completed)
	c.Due, c.Finish, c.Execution = now, now, u.firstStart()

	u.completeInTx()
	applied, err := l.runner.store.Update(ctx, tx, []row.Change{c})
	if err != nil {
		return err
	}
	if applied == 0 {
		return processor.ErrLeaseLost
	}
	return nil
}

// Started implements [processor.Lease].
func (l *lease) Started() { l.runner.start(l.run) }

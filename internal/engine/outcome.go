package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// settlement is the result of an attempt, ready to be written.
type settlement struct {
	attempt *attempt
	change  row.Change
	kind    string // what the metrics call it
	err     error  // why the attempt failed, nil otherwise
	bare    bool   // its error text was dropped, because the database refused the result
}

// outcome turns what a processor returned into the transition of its row. cause says why its context ended, nil when it
// did not.
func (r *runner) outcome(a *attempt, reg *processor.Registration, now row.Time, err, cause error) settlement {
	if err == nil {
		c := changeOf(&a.row, row.Completed)
		c.Due, c.Finish, c.Execution = now, now, a.firstStart()
		return settlement{attempt: a, change: c, kind: metrics.RunCompleted}
	}
	if errors.Is(cause, processor.ErrStopping) || errors.Is(cause, processor.ErrLeaseLost) {
		return released(a, now)
	}
	if snooze, ok := errors.AsType[*processor.SnoozeError](err); ok {
		c := releaseOf(&a.row, after(now, snooze.After))
		c.Execution = a.firstStart()
		return settlement{attempt: a, change: c, kind: metrics.RunSnoozed}
	}
	if errors.Is(cause, processor.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) {
		err = processor.ErrTimeout
	}
	if _, ok := errors.AsType[*processor.PermanentError](err); ok {
		return r.clipped(failed(a, row.Failed, now, err, metrics.RunFailed))
	}
	return r.failure(a, now, err, r.backoff(reg, err))
}

// failure is an attempt that ended with an error: another one follows unless attempts are used up.
func (r *runner) failure(a *attempt, now row.Time, err error, backoff processor.Backoff) settlement {
	if a.row.MaxAttempts > 0 && a.row.Attempt >= a.row.MaxAttempts {
		return r.clipped(failed(a, row.Failed, now, err, metrics.RunFailed))
	}
	s := failed(a, row.Pending, now, err, metrics.RunRetried)
	s.change.Due, s.change.Finish = after(now, backoff(a.row.Attempt)), 0
	return r.clipped(s)
}

// backoff says how long the next attempt waits: what the error asks for, else what the tag does.
func (r *runner) backoff(reg *processor.Registration, err error) processor.Backoff {
	if asked, ok := errors.AsType[*processor.RetryAfterError](err); ok {
		return processor.Constant(asked.After)
	}
	if reg.Backoff != nil {
		return reg.Backoff
	}
	return r.cfg.Backoff
}

// after is a moment that the database can store, whatever wait a processor asks for.
func after(now row.Time, wait time.Duration) row.Time {
	return min(now.Add(max(wait, 0)), row.MaxTime-1)
}

// failed is an unsuccessful attempt: the error and the attempt are kept with the row.
func failed(a *attempt, to row.Status, now row.Time, err error, kind string) settlement {
	c := changeOf(&a.row, to)
	c.Due, c.Finish, c.Execution = now, now, a.firstStart()
	text := fmt.Sprint(err)
	c.ErrorStack = text
	if panicked, ok := errors.AsType[*processor.PanicError](err); ok {
		c.ErrorStack += "\n\n" + string(panicked.Stack)
		kind = metrics.RunPanicked
	}
	c.Errors = row.AppendAttempt(a.row.Errors, row.Attempt{
		N: a.row.Attempt, Due: a.due.Std(), Started: a.started.Std(), Finished: now.Std(), Executor: a.row.Executor, Error: text,
	})
	return settlement{attempt: a, change: c, kind: kind, err: err}
}

// clipped adds the stacks that the error carries, and bounds the text to what is kept.
func (r *runner) clipped(s settlement) settlement {
	limit := r.cfg.ErrorLimit
	s.change.ErrorStack = row.Clip(s.change.ErrorStack+row.Stacks(s.err, limit), limit)
	return s
}

// released gives the task back as it was before the claim: no attempt is burned, and it is due no earlier than it was.
func released(a *attempt, now row.Time) settlement {
	c := releaseOf(&a.row, max(a.due, now))
	c.Execution = a.firstStart()
	return settlement{attempt: a, change: c, kind: metrics.RunReleased}
}

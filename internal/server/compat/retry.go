package compat

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// ttrHeader marks a job of these routes among the tasks of its tag. It holds the TTR that was asked for, in
// milliseconds.
const ttrHeader = "delaytask-ttr"

// RetryAfterTTR lets a job whose processor has failed run again when its TTR has passed since the attempt began, as
// these protocols have it, instead of after the tag's backoff. usual is the TTR of jobs that were added without one.
// Tasks that were saved in another way, and what an error itself says about the next attempt, are left alone.
func RetryAfterTTR(usual time.Duration) processor.Middleware {
	return func(next processor.Processor) processor.Processor {
		next = processor.Recovery()(next) // a panic is a failure too
		return processor.Func(func(ctx context.Context, task *processor.Task) error {
			began := time.Now()
			err := next.Process(ctx, task)
			ttr, ours := ttrOf(task, usual)
			if err == nil || !ours || saysWhen(err) {
				return err
			}
			if errors.Is(context.Cause(ctx), processor.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) {
				err = processor.ErrTimeout // what the engine would make of it, and drop our wait by that
			}
			return processor.RetryAfter(err, ttr-time.Since(began))
		})
	}
}

// saysWhen reports whether the error is one that decides about the next attempt.
func saysWhen(err error) bool {
	_, permanent := errors.AsType[*processor.PermanentError](err)
	_, snooze := errors.AsType[*processor.SnoozeError](err)
	_, retry := errors.AsType[*processor.RetryAfterError](err)
	_, handOver := errors.AsType[*processor.HandOverError](err)
	return permanent || snooze || retry || handOver
}

func ttrOf(task *processor.Task, usual time.Duration) (ttr time.Duration, ours bool) {
	text, ours := task.Headers[ttrHeader]
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 {
		return max(time.Duration(ms)*time.Millisecond, time.Second), ours
	}
	return usual, ours
}

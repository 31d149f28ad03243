package scanner

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

// Verdict decides what becomes of a row whose lease is over: it runs again at once, at the cost of a crash and not of
// an attempt. When its crashes reach the limit it is failed instead, because it probably is what ends its executors.
// A row that was popped crashed nobody: its attempt is spent, and it is failed when attempts are used up. started is
// when the attempt did, as far as that is known.
func Verdict(r row.Row, started, now row.Time, quarantine int) row.Change {
	c := row.Change{
		ID: r.ID, Version: r.Version, From: row.Executing, To: row.Pending, LeaseOver: true,
		Due: now, Attempt: r.Attempt, CrashCount: r.CrashCount, Execution: r.Execution,
	}
	switch {
	case !row.Popped(r.Executor):
		c.Attempt = max(0, r.Attempt-1)
		c.CrashCount++
		c.ErrorStack = fmt.Sprintf("lease lost: the executor is gone or was stuck; lost %d times", c.CrashCount)
		if c.CrashCount >= quarantine {
			c.To = row.Failed
			c.ErrorStack = fmt.Sprintf("quarantined: the lease was lost %d times, so the task probably ends its executors",
				c.CrashCount)
		}
	case r.MaxAttempts > 0 && r.Attempt >= r.MaxAttempts:
		c.To = row.Failed
		c.ErrorStack = fmt.Sprintf("attempts used up: handed out and not finished within its lease, %d of %d", r.Attempt,
			r.MaxAttempts)
	default:
		c.ErrorStack = "handed out and not finished within its lease"
	}
	if c.To.Final() {
		c.Finish = now
	}
	c.Errors = row.AppendAttempt(r.Errors, row.Attempt{
		N: r.Attempt, Started: started.Std(), Finished: now.Std(), Executor: r.Executor, Error: c.ErrorStack,
	})
	return c
}

// changed is the row as it is once the change has been applied.
func changed(r row.Row, c row.Change) row.Row {
	r.Status, r.Version = c.To, r.Version+1
	r.Attempt, r.CrashCount = c.Attempt, c.CrashCount
	r.Due, r.Finish = c.Due, c.Finish
	r.Executor, r.ErrorStack, r.Errors = c.Executor, c.ErrorStack, c.Errors
	return r
}

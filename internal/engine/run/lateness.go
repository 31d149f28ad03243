package run

import (
	"cmp"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// lateFrom is the smallest lateness whose reason is stored with the task's result.
const lateFrom = 100 * time.Millisecond

// Measure records how late a task is when it starts for the first time, and where the time went. It returns why, for
// the row, or "" when the task is not late.
func (r *runner) Measure(a *Attempt, started row.Time) delaytask.LateReason {
	if !a.Row.Execution.IsZero() {
		return ""
	}
	began := cmp.Or(a.began, started)
	sent, ready := started.Add(-time.Since(a.sent)), began
	if !a.Item.Entered.IsZero() { // a popped task waits for no slot
		ready = started.Add(-time.Since(a.Item.Entered))
	}
	fired, promised := max(a.Item.Fired, a.Due), a.expected()
	parts := lateParts{
		total: started.Sub(promised), retry: max(a.Due.Sub(promised), 0), found: fired.Sub(a.Due),
		queue: max(sent.Sub(fired), 0) + began.Sub(ready), claim: max(ready.Sub(max(sent, a.Due)), 0),
		receiver: started.Sub(began),
	}
	r.Counts.Late(a.Row.Tag, parts.total)
	r.Metrics.Late(a.Row.Tag, metrics.Lateness{
		Total: parts.total, Timer: parts.found, Claim: parts.claim, Pool: parts.queue,
		Receiver: parts.retry + parts.receiver,
	})
	if parts.total <= lateFrom {
		return ""
	}
	return r.whyLate(a.Item, parts)
}

// lateParts is where the time of a late task went.
type lateParts struct {
	total    time.Duration
	retry    time.Duration // earlier attempts, and the waits between them
	found    time.Duration // until it came into the run queue
	queue    time.Duration // until it was claimed, and then until it had a slot
	claim    time.Duration // the statement of the claim
	receiver time.Duration // until a receiver accepted it
}

// whyLate returns the one reason that explains most of the lateness. A reason that kept all tasks from starting, for at
// least half of it, goes before the place where the task waited.
func (r *runner) whyLate(it *runqueue.Item, parts lateParts) delaytask.LateReason {
	now := time.Now()
	wait := table.Span{From: now.Add(-parts.total), To: now}
	why, most := delaytask.LateReason(""), parts.total/2
	hindered := func(during table.Span, by delaytask.LateReason) {
		if d := wait.Overlap(during); d >= most {
			why, most = by, d
		}
	}
	opened := r.arm.Tags.Opening(it.Tag())
	hindered(table.Span{To: opened.At}, opened.After)
	hindered(r.Health.ClaimsFail.Last(now), delaytask.LateDatabase)
	hindered(r.Unread.Last(now), delaytask.LateDatabase)
	hindered(r.Held.Last(now), delaytask.LateClock)
	if why != "" {
		return why
	}
	why, most = whyFound(it), parts.found
	for _, part := range []struct {
		why  delaytask.LateReason
		took time.Duration
	}{
		{delaytask.LateRetry, parts.retry}, {whyQueued(it), parts.queue}, {delaytask.LateDatabase, parts.claim},
		{delaytask.LateReceiver, parts.receiver},
	} {
		if part.took > most {
			why, most = part.why, part.took
		}
	}
	return why
}

// whyFound returns why a task came late into the run queue.
func whyFound(it *runqueue.Item) delaytask.LateReason {
	if it.Found {
		return delaytask.LateFound
	}
	return delaytask.LateProcess // its timer fired late
}

// whyQueued returns what a task of the run queue waited for.
func whyQueued(it *runqueue.Item) delaytask.LateReason {
	switch {
	case it.Hindered != "":
		return it.Hindered
	case it.TagFull:
		return delaytask.LateTagLimit
	default:
		return delaytask.LateSlot
	}
}

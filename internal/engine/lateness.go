package engine

import (
	"cmp"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// lateFrom is the lateness from which a task's settle stores why it was late.
const lateFrom = 100 * time.Millisecond

// measure records how late a task is when it starts for the first time, and where the time went. It returns why, for
// the row, or LateUnknown when the task is not late.
func (r *runner) measure(a *attempt, started row.Time) row.LateReason {
	if !a.row.Execution.IsZero() {
		return row.LateUnknown
	}
	began := cmp.Or(a.began, started)
	sent, ready := started.Add(-time.Since(a.sent)), began
	if !a.item.Entered.IsZero() { // a popped task waits for no slot
		ready = started.Add(-time.Since(a.item.Entered))
	}
	fired, promised := max(a.item.Fired, a.due), a.expected()
	parts := lateParts{
		total: started.Sub(promised), retry: max(a.due.Sub(promised), 0), found: fired.Sub(a.due),
		queue: max(sent.Sub(fired), 0) + began.Sub(ready), claim: max(ready.Sub(max(sent, a.due)), 0),
		receiver: started.Sub(began),
	}
	r.counts.Late(a.row.Tag, parts.total)
	r.Metrics.Late(a.row.Tag, metrics.Lateness{
		Total: parts.total, Timer: parts.found, Claim: parts.claim, Pool: parts.queue,
		Receiver: parts.retry + parts.receiver,
	})
	if parts.total <= lateFrom {
		return row.LateUnknown
	}
	return r.whyLate(a.item, parts)
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

// whyLate returns the one reason that explains most of the lateness. What kept all tasks from starting for at least
// half of it goes before where the task waited meanwhile.
func (r *runner) whyLate(it *runqueue.Item, parts lateParts) row.LateReason {
	now := time.Now()
	wait := span{now.Add(-parts.total), now}
	why, most := row.LateUnknown, parts.total/2
	hindered := func(during span, by row.LateReason) {
		if d := wait.overlap(during); d >= most {
			why, most = by, d
		}
	}
	opened := r.arm.tags.opening(it.Tag())
	hindered(span{to: opened.at}, opened.after)
	hindered(r.health.claimsFail.last(now), row.LateDatabase)
	hindered(r.unread.last(now), row.LateDatabase)
	hindered(r.held.last(now), row.LateClock)
	if why != row.LateUnknown {
		return why
	}
	why, most = whyFound(it), parts.found
	for _, part := range []struct {
		why  row.LateReason
		took time.Duration
	}{
		{row.LateRetry, parts.retry}, {whyQueued(it), parts.queue}, {row.LateDatabase, parts.claim},
		{row.LateReceiver, parts.receiver},
	} {
		if part.took > most {
			why, most = part.why, part.took
		}
	}
	return why
}

// whyFound returns why a task came late into the run queue.
func whyFound(it *runqueue.Item) row.LateReason {
	if it.Found {
		return row.LateFound
	}
	return row.LateProcess // its timer fired late
}

// whyQueued returns what a task of the run queue waited for.
func whyQueued(it *runqueue.Item) row.LateReason {
	switch {
	case it.Hindered != row.LateUnknown:
		return it.Hindered
	case it.TagFull:
		return row.LateTagLimit
	default:
		return row.LateSlot
	}
}

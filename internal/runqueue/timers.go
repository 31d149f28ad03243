package runqueue

import (
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

// timers holds the rows that fall due soon. It counts those of each tag, because a tag with a timer is not forgotten.
type timers struct {
	timer.Heap
	tags *tagTable
	most int
}

// entry makes a timer of a sighting.
func entry(d row.Due, tag *tagQueue, own bool) timer.Entry {
	return timer.Entry{
		ID: d.ID, Version: d.Version, Due: d.Due, Tag: tag.number, Own: own,
		Priority: int8(min(max(d.Priority, math.MinInt8), math.MaxInt8)),
		Crashes:  uint8(min(max(d.CrashCount, 0), math.MaxUint8)),
	}
}

// arm adds a timer, or replaces the one of the same row. Beyond the bound it drops those that are due last.
func (t *timers) arm(e timer.Entry) {
	old, armed := t.Get(e.ID)
	t.Set(e)
	t.tags.byNumber[e.Tag].armed++
	if armed {
		t.disarmed(old)
	}
	t.Trim(t.most, t.disarmed)
}

// disarm drops the timer of a row.
func (t *timers) disarm(id int64) {
	if e, armed := t.Remove(id); armed {
		t.disarmed(e)
	}
}

// disarmed notes that a timer has left the heap.
func (t *timers) disarmed(e timer.Entry) {
	tag := t.tags.byNumber[e.Tag]
	tag.armed--
	t.tags.forget(tag)
}

// Window is how far ahead of their due times rows are claimed.
type Window struct {
	Near  time.Duration // a row that is due within it waits with what is due now, also for the last slots
	First time.Duration // a row that is due within it has to be claimed
	Last  time.Duration // a row that is due within it is claimed along with others
}

// Arm sets a timer for a row that was seen. A newer sighting replaces the timer, or the row in its ready queue. A row
// that this process owns stays as it is. own marks a timer that fires here whatever this node's share is by then.
func (q *Queue) Arm(d row.Due, own bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.isNews(d) {
		return
	}
	q.timers.arm(entry(d, q.tags.get(d.Tag), own))
	if head, ok := q.timers.First(); ok && head.ID == d.ID {
		q.TimerWake.Set()
	}
}

// Fire moves timers into the ready queues: all that are due within ahead.Last, once one is due within ahead.First. It
// also makes rows ready that are nearly due. mine decides which timers still fire here. Fire returns how long it has
// nothing to do.
func (q *Queue) Fire(now row.Time, ahead Window, mine func(e timer.Entry, tag string) bool) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	near := now.Add(ahead.Near)
	if head, ok := q.timers.First(); ok && head.Due <= now.Add(ahead.First) {
		q.drainDue(now, near, now.Add(ahead.Last), mine)
		q.ClaimWake.Set()
	}
	next, some := q.ready.makeReady(near)
	if some {
		q.ClaimWake.Set()
	}
	wait := next.Sub(near)
	if head, ok := q.timers.First(); ok {
		wait = min(wait, head.Due.Sub(now.Add(ahead.First)))
	}
	return max(wait, 0)
}

// drainDue moves the timers that are due by last into the ready queues.
func (q *Queue) drainDue(now, near, last row.Time, mine func(timer.Entry, string) bool) {
	for {
		e, ok := q.timers.PopBefore(last)
		if !ok {
			return
		}
		tag := q.tags.byNumber[e.Tag]
		if mine(e, tag.name) {
			q.ready.push(&Item{Entry: e, tag: tag, Fired: now, upcoming: e.Crashes < ProbationAt && e.Due > near})
		}
		q.timers.disarmed(e)
	}
}

// FiresBy reports whether a timer fires by then.
func (q *Queue) FiresBy(t row.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.firesBy(t)
}

func (q *Queue) firesBy(t row.Time) bool {
	head, ok := q.timers.First()
	return ok && head.Due <= t
}

// Claimable reports whether a row waits in a ready queue, or its timer fires by then.
func (q *Queue) Claimable(until row.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.firesBy(until) || len(q.ready.waiting) > 0
}

package metrics

import (
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
)

// Saved counts n saves that got the same answer, one of the Save constants.
func (c *collector) Saved(result string, n int) {
	c.saves.WithLabelValues(result).Add(float64(n))
}

// Claimed counts the rows that one claim won and lost.
func (c *collector) Claimed(won, lost int) {
	c.claims.WithLabelValues(claimWon).Add(float64(won))
	c.claims.WithLabelValues(claimLost).Add(float64(lost))
}

// ClaimFailed counts the n rows of a claim whose statement ended in an error.
func (c *collector) ClaimFailed(n int) {
	c.claims.WithLabelValues(claimError).Add(float64(n))
}

// Run counts an attempt that ended with one of the Run constants.
func (c *collector) Run(tag, result string) {
	c.runs.WithLabelValues(c.tags.label(tag), result).Inc()
}

// Retried counts an attempt that will be followed by another one.
func (c *collector) Retried(tag string) {
	c.retries.WithLabelValues(c.tags.label(tag)).Inc()
}

// Rescued counts n leases that a rescue looked at, with one of the Rescue constants.
func (c *collector) Rescued(result string, n int) {
	c.rescues.WithLabelValues(result).Add(float64(n))
}

// Quarantined counts a task that was failed because it lost its executor too often.
func (c *collector) Quarantined() {
	c.quarantined.Inc()
}

// IgnoredContext counts a processor that went on after its context had ended.
func (c *collector) IgnoredContext() {
	c.ignoredContext.Inc()
}

// Purged counts n rows of a final status that were deleted.
func (c *collector) Purged(status string, n int) {
	c.purged.WithLabelValues(status).Add(float64(n))
}

// DatabaseError counts an error of the class, as row.Class names it.
func (c *collector) DatabaseError(class string) {
	c.databaseErrors.WithLabelValues(class).Inc()
}

// Late measures the start of a first attempt. The part of receivers has values only where one was waited for.
func (c *collector) Late(tag string, late metrics.Lateness) {
	label := c.tags.label(tag)
	c.observe(label, "total", late.Total)
	c.observe(label, "timer", late.Timer)
	c.observe(label, "claim", late.Claim)
	c.observe(label, "pool", late.Pool)
	if late.Receiver > 0 {
		c.observe(label, "receiver", late.Receiver)
	}
}

// observe counts a negative share as none: a task is claimed ahead of its time, and a sum that can fall breaks every
// rate.
func (c *collector) observe(tag, part string, d time.Duration) {
	c.lateness.WithLabelValues(tag, part).Observe(max(d, 0).Seconds())
}

// Ran measures how long a processor took.
func (c *collector) Ran(tag string, took time.Duration) {
	c.duration.WithLabelValues(c.tags.label(tag)).Observe(took.Seconds())
}

// Batch measures how many rows one statement of the operation carried.
func (c *collector) Batch(op string, n int) {
	c.batchSize.WithLabelValues(op).Observe(float64(n))
}

// SetHeap says how many tasks are armed.
func (c *collector) SetHeap(n int) {
	c.heapEntries.Set(float64(n))
}

// SetRunning says how many tasks this process has claimed and not yet finished.
func (c *collector) SetRunning(n int) {
	c.running.Set(float64(n))
}

// SetConcurrency says how many tasks may run at once.
func (c *collector) SetConcurrency(n int) {
	c.concurrency.Set(float64(n))
}

// SetNodes says how many processes have a fresh heartbeat, this one and those that only save included.
func (c *collector) SetNodes(n int) {
	c.nodesAlive.Set(float64(n))
}

// Woke counts a wake-up between processes.
func (c *collector) Woke(event string) {
	c.wakeups.WithLabelValues(event).Inc()
}

// SetUnreachable says how many processes do not acknowledge the wake-ups of this one.
func (c *collector) SetUnreachable(n int) {
	c.unreachable.Set(float64(n))
}

// SetClockHeld says whether no task starts, because the database's time is not known.
func (c *collector) SetClockHeld(held bool) {
	value := 0.0
	if held {
		value = 1
	}
	c.clockHeld.Set(value)
}

// Clock says how far apart the bounds of the database's clock are, and how far this machine's wall clock is ahead of
// it.
func (c *collector) Clock(width, skew time.Duration) {
	c.clockWidth.Set(width.Seconds())
	c.clockSkew.Set(skew.Seconds())
}

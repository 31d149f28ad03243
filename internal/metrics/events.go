package metrics

import "time"

// Saved counts n saves that got the same answer, one of the Save constants.
func (c *Collector) Saved(result string, n int) {
	if c != nil {
		c.saves.WithLabelValues(result).Add(float64(n))
	}
}

// Claimed counts the rows that one claim won and lost.
func (c *Collector) Claimed(won, lost int) {
	if c != nil {
		c.claims.WithLabelValues(claimWon).Add(float64(won))
		c.claims.WithLabelValues(claimLost).Add(float64(lost))
	}
}

// ClaimFailed counts the n rows of a claim whose statement ended in an error.
func (c *Collector) ClaimFailed(n int) {
	if c != nil {
		c.claims.WithLabelValues(claimError).Add(float64(n))
	}
}

// Run counts an attempt that ended with one of the Run constants.
func (c *Collector) Run(tag, result string) {
	if c != nil {
		c.runs.WithLabelValues(c.tags.label(tag), result).Inc()
	}
}

// Retried counts an attempt that will be followed by another one.
func (c *Collector) Retried(tag string) {
	if c != nil {
		c.retries.WithLabelValues(c.tags.label(tag)).Inc()
	}
}

// Rescued counts n leases that a rescue looked at, with one of the Rescue constants.
func (c *Collector) Rescued(result string, n int) {
	if c != nil {
		c.rescues.WithLabelValues(result).Add(float64(n))
	}
}

// Quarantined counts a task that was failed because it lost its executor too often.
func (c *Collector) Quarantined() {
	if c != nil {
		c.quarantined.Inc()
	}
}

// IgnoredContext counts a processor that went on after its context had ended.
func (c *Collector) IgnoredContext() {
	if c != nil {
		c.ignoredContext.Inc()
	}
}

// Purged counts n rows of a final status that were deleted.
func (c *Collector) Purged(status string, n int) {
	if c != nil {
		c.purged.WithLabelValues(status).Add(float64(n))
	}
}

// DatabaseError counts an error of the class, as row.Class names it.
func (c *Collector) DatabaseError(class string) {
	if c != nil {
		c.databaseErrors.WithLabelValues(class).Inc()
	}
}

// Lateness is how late a first attempt started: in total, and waiting for the timer, for the claim's statement, for a
// slot, and for a receiver.
type Lateness struct{ Total, Timer, Claim, Pool, Receiver time.Duration }

// Late measures the start of a first attempt. The part of receivers has values only where one was waited for.
func (c *Collector) Late(tag string, late Lateness) {
	if c == nil {
		return
	}
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
func (c *Collector) observe(tag, part string, d time.Duration) {
	c.lateness.WithLabelValues(tag, part).Observe(max(d, 0).Seconds())
}

// Batch measures how many rows one statement of the operation carried.
func (c *Collector) Batch(op string, n int) {
	if c != nil {
		c.batchSize.WithLabelValues(op).Observe(float64(n))
	}
}

// SetHeap says how many tasks are armed.
func (c *Collector) SetHeap(n int) {
	if c != nil {
		c.heapEntries.Set(float64(n))
	}
}

// SetRunning says how many tasks this process has claimed and not yet finished.
func (c *Collector) SetRunning(n int) {
	if c != nil {
		c.running.Set(float64(n))
	}
}

// SetConcurrency says how many tasks may run at once.
func (c *Collector) SetConcurrency(n int) {
	if c != nil {
		c.concurrency.Set(float64(n))
	}
}

// SetNodes says how many processes have a fresh heartbeat, this one and those that only save included.
func (c *Collector) SetNodes(n int) {
	if c != nil {
		c.nodesAlive.Set(float64(n))
	}
}

// Clock says how far apart the bounds of the database's clock are, and how far this machine's wall clock is ahead of
// it.
func (c *Collector) Clock(width, skew time.Duration) {
	if c != nil {
		c.clockWidth.Set(width.Seconds())
		c.clockSkew.Set(skew.Seconds())
	}
}

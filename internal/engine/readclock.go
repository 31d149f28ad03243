package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
)

const (
	readClockEvery = time.Second
	readClockBusy  = 50 * time.Millisecond // while something is due soon, to undo the drift
	readClockIdle  = 2 * time.Second       // while nothing is due soon, of many nodes
	readClockSlews = 10 * time.Millisecond // the same while a clock is slewed, by which the bounds are wide
)

// readClock keeps the bounds of the database's clock narrow. Where one reading at a time will do, it leaves out
// what claims read meanwhile, but asks once a second all the same, since only that shows where new connections lead.
// With each turn it asks suspended whether the machine has slept.
func (e *Engine) readClock(ctx context.Context, suspended func() (time.Duration, bool)) {
	behind := false
	var asked time.Time
	for {
		every, readings := e.interval()
		every = lifecycle.Jitter(every, 0.1)
		wait := every
		if readings == 1 {
			wait -= min(e.events.Age(), time.Since(asked))
		}
		if _, anchored := e.events.Bounds.AtLeast(); !anchored {
			wait = lifecycle.Backoff(2)
		}
		if !e.events.WaitForReading(ctx, wait) {
			return
		}
		if slept, ok := suspended(); ok {
			e.events.Suspended(slept)
			behind = true
		}
		var err error
		if readings > 1 || !e.isRead(every) || time.Since(asked) >= max(every, readClockEvery) {
			asked = time.Now()
			err = e.events.TakeReadings(ctx, e.events.Store, readings)
		}
		e.events.ReportClock()
		if err != nil {
			e.events.Failed("reading the database's clock", err)
			continue
		}
		if behind {
			behind = false
			e.find.Scan()
		}
	}
}

// isRead reports whether a claim has read the clock within that time.
func (e *Engine) isRead(within time.Duration) bool {
	_, anchored := e.events.Bounds.AtLeast()
	return anchored && e.events.Age() < within
}

// interval is how often the clock is read, and how many times in a row. Tasks start late by what the lower bound lags
// behind: by the drift that is allowed for since the last reading, and by the time of its reply. Until a reading shows
// a slew of the database's clock, they start early by the slew since the last reading.
func (e *Engine) interval() (every time.Duration, readings int) {
	if e.pool.Attempts.Len() == 0 && !e.runqueue.FiresBy(e.events.Now().Add(readClockEvery)) {
		if e.arm.Census.Many() {
			return readClockIdle, 1
		}
		return readClockEvery, 1
	}
	crowd := e.arm.Census.Crowd()
	switch {
	case e.events.Bounds.Slewed():
		return readClockSlews * crowd, 1
	case crowd > 1:
		return min(readClockBusy*crowd, readClockEvery), 1
	default:
		return readClockBusy, table.ReadingsInARow
	}
}

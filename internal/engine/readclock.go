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
	readClockSlews = 10 * time.Millisecond // the same while a clock is slewed, by which the bounds are wide
)

// readClock keeps the bounds of the database's clock narrow. With each reading it asks suspended whether the machine
// has slept.
func (e *Engine) readClock(ctx context.Context, suspended func() (time.Duration, bool)) {
	behind := false
	for {
		every, readings := e.interval()
		wait := lifecycle.Jitter(every, 0.1)
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
		err := e.events.TakeReadings(ctx, e.events.Store, readings)
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

// interval is how often the clock is read, and how many times in a row. Tasks start late by what the lower bound lags
// behind: by the drift that is allowed for since the last reading, and by the time of its reply. Until a reading shows
// a slew of the database's clock, they start early by the slew since the last reading.
func (e *Engine) interval() (every time.Duration, readings int) {
	if e.pool.Attempts.Len() > 0 || e.runqueue.FiresBy(e.events.Now().Add(readClockEvery)) {
		if e.events.Bounds.Slewed() {
			return readClockSlews, 1
		}
		return readClockBusy, table.ReadingsInARow
	}
	return readClockEvery, 1
}

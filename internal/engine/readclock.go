package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
)

const (
	readClockEvery = time.Second
	readClockBusy  = 100 * time.Millisecond // while something is due soon, to undo the drift
)

// readClock keeps the bounds of the database's clock narrow. With each reading it asks suspended whether the machine
// has slept.
func (e *Engine) readClock(ctx context.Context, suspended func() (time.Duration, bool)) {
	behind := false
	for {
		every, readings := e.interval()
		wait := lifecycle.Jitter(every, 0.1)
		if _, anchored := e.events.clock.AtLeast(); !anchored {
			wait = lifecycle.Backoff(2)
		}
		if !e.events.waitForReading(ctx, wait) {
			return
		}
		if slept, ok := suspended(); ok {
			e.events.suspended(slept)
			behind = true
		}
		err := e.events.takeReadings(ctx, e.events.store, readings)
		e.events.reportClock()
		if err != nil {
			e.events.Failed("reading the database's clock", err)
			continue
		}
		if behind {
			behind = false
			e.find.scan()
		}
	}
}

// interval is how often the clock is read, and how many times in a row. Tasks start late by what the lower bound lags
// behind: by the drift that is allowed for since the last reading, and by the time of its reply.
func (e *Engine) interval() (every time.Duration, readings int) {
	if e.pool.attempts.len() > 0 || e.runqueue.FiresBy(e.events.now().Add(readClockEvery)) {
		return readClockBusy, readingsInARow
	}
	return readClockEvery, 1
}

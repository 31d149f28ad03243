package sim

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle/clock"
)

// machineOf is what processes know of their own time. The bubble's clock, by which all timers run, is their monotonic
// one. So where that is slewed fast, the raw clock is slow.
func machineOf(raw *pace) clock.Machine {
	begin := raw.now()
	return clock.Machine{
		Raw:  func() time.Duration { return raw.now().Sub(begin) },
		Rate: func() float64 { return 1 / raw.speed() },
	}
}

// slew changes how fast the raw clock of the processes runs, and the database's, and returns what it did. The
// database's is sound on the processes' machine, slewed with theirs, or slewed by itself.
func slew(d draw, raw, db *pace, oneMachine, slewsDB bool) string {
	rate := oneOf(d, 1, 1/(1+maxSlew), 1/(1-maxSlew), 1/(1+maxSlew*(2*d.Float64()-1)))
	dbRate := rate
	switch {
	case oneMachine:
		dbRate = 1
	case slewsDB:
		dbRate = rate * oneOf(d, 1, 1-maxSlew, 1+maxSlew, 1+maxSlew*(2*d.Float64()-1))
	}
	raw.set(rate)
	db.set(dbRate)
	return fmt.Sprintf("the processes run at %.3f, the database at %.3f", 1/rate, dbRate/rate)
}

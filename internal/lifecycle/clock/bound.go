package clock

import (
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// bound is a bound of the database's time: value, and what has passed since, which was counted until the moment at.
type bound struct {
	value  row.Time
	passed time.Duration
	at     moment
}

// least and most return what has passed until now.
func (l bound) least(now moment) time.Duration { least, _ := now.since(l.at); return l.passed + least }
func (l bound) most(now moment) time.Duration  { _, most := now.since(l.at); return l.passed + most }

// atLeast returns where a lower bound stands at now: it moves too slowly by the drift.
func (l bound) atLeast(now moment, drift float64) row.Time {
	passed := l.least(now)
	return l.value + row.Time((passed-slack(passed, drift))/time.Microsecond)
}

// atMost returns where an upper bound stands at now: it moves too fast by the drift.
func (l bound) atMost(now moment, drift float64) row.Time {
	passed := l.most(now)
	return l.value.Add(passed + slack(passed, drift))
}

// position is where a bound stands, to the nanosecond. Bounds are compared by it: of two in the same microsecond, the
// one behind by nanoseconds enters the next microsecond later.
type position struct {
	micros row.Time
	rest   time.Duration
}

func (p position) before(q position) bool {
	return p.micros < q.micros || p.micros == q.micros && p.rest < q.rest
}

func (l bound) lowerPosition(now moment, drift float64) position {
	passed := l.least(now)
	return l.after(passed - slack(passed, drift))
}

func (l bound) upperPosition(now moment, drift float64) position {
	passed := l.most(now)
	return l.after(passed + slack(passed, drift))
}

func (l bound) after(d time.Duration) position {
	return position{l.value + row.Time(d/time.Microsecond), d % time.Microsecond}
}

// until returns how much must have passed when a lower bound reaches t.
func (l bound) until(t row.Time, drift float64) time.Duration {
	ahead := time.Duration(min(max(t-l.value, -farMicros), farMicros)) * time.Microsecond
	if ahead <= 0 {
		return ahead
	}
	// The last addend makes up for rounding, here and in atLeast.
	return ahead + slack(ahead, drift/(1-drift)) + 3
}

// farMicros is about 143 years, half of what a time.Duration can hold. It keeps a due time in the year 9998 from
// overflowing.
const farMicros = row.Time(math.MaxInt64 / 2 / int64(time.Microsecond))

func slack(d time.Duration, drift float64) time.Duration {
	return time.Duration(math.Ceil(float64(d) * drift))
}

// bounds hold one server's clock between them.
type bounds struct{ lower, upper bound }

// moved returns the same bounds, counted until now. What passes later is counted anew, by the clock that counts less of
// it, or more: what a clock has counted too much so far does not make up for what it counts too little then.
func (b bounds) moved(now moment) bounds {
	b.lower.passed, b.lower.at = b.lower.least(now), now
	b.upper.passed, b.upper.at = b.upper.most(now), now
	return b
}

// difference returns by how much the two clocks certainly differ, or a negative number when they may agree.
func (b bounds) difference(other bounds, now moment, drift float64) time.Duration {
	ahead := b.lower.atLeast(now, drift) - other.upper.atMost(now, drift)
	behind := other.lower.atLeast(now, drift) - b.upper.atMost(now, drift)
	return time.Duration(min(max(ahead, behind), farMicros)) * time.Microsecond
}

// narrow returns the intersection: of each bound, the tighter one.
func (b bounds) narrow(fresh bounds, now moment, drift float64) bounds {
	if b.lower.lowerPosition(now, drift).before(fresh.lower.lowerPosition(now, drift)) {
		b.lower = fresh.lower
	}
	if fresh.upper.upperPosition(now, drift).before(b.upper.upperPosition(now, drift)) {
		b.upper = fresh.upper
	}
	return b
}

// join returns what holds both: of each bound, the wider one.
func (b bounds) join(fresh bounds, now moment, drift float64) bounds {
	if fresh.lower.lowerPosition(now, drift).before(b.lower.lowerPosition(now, drift)) {
		b.lower = fresh.lower
	}
	if b.upper.upperPosition(now, drift).before(fresh.upper.upperPosition(now, drift)) {
		b.upper = fresh.upper
	}
	return b
}

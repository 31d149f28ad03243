package decide

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// mostCounted bounds how exactly the history says how many ticks were missed: a year of a tick in 30 s.
const mostCounted = 1_000_000

// ticks are the ticks of a schedule that are not decided ahead of its cursor, and when they are due.
type ticks struct {
	spec   *spec.Spec
	jitter time.Duration
	ahead  []row.ScheduleRun // ticks at the cursor or behind it that an operator has skipped
}

func newTicks(s *row.Schedule, sp *spec.Spec, ahead []row.ScheduleRun) ticks {
	return ticks{sp, Jitter(s.Name, s.Jitter), ahead}
}

// skipped returns the rows of a history that say which ticks from one on do not run: a skip of a tick stays one when
// another definition has ticks before it. A run has not been decided ahead of the cursor.
func skipped(history []row.ScheduleRun, from row.Time) (ahead []row.ScheduleRun) {
	for _, r := range history {
		if r.TaskID == 0 && r.Tick >= from {
			ahead = append(ahead, r)
		}
	}
	return ahead
}

func (t ticks) isAhead(tick row.Time) bool {
	return slices.ContainsFunc(t.ahead, func(r row.ScheduleRun) bool { return r.Tick <= tick && tick <= r.Until })
}

// Jitter returns how long after its ticks a schedule is due. It is below most, and depends on the name alone, so that
// the distances between ticks stay.
func Jitter(name string, most time.Duration) time.Duration {
	if most < time.Microsecond {
		return 0
	}
	hash := sha256.Sum256([]byte(name))
	micros := binary.BigEndian.Uint64(hash[:]) % uint64(most/time.Microsecond)
	return time.Duration(micros) * time.Microsecond
}

func (t ticks) due(tick row.Time) row.Time { return tick.Add(t.jitter) }

// zone returns the name of the zone, "" for UTC.
func (t ticks) zone() string {
	if name := t.spec.Zone().String(); name != "UTC" {
		return name
	}
	return ""
}

// next returns the first tick after the moment, or zero.
func (t ticks) next(after row.Time) row.Time {
	for {
		after = row.At(t.spec.Next(after.Std()))
		if !t.isAhead(after) {
			return after
		}
	}
}

// prev returns the last tick before the moment, or zero.
func (t ticks) prev(before row.Time) row.Time {
	for {
		before = row.At(t.spec.Prev(before.Std()))
		if !t.isAhead(before) {
			return before
		}
	}
}

// dueBy returns the last tick that is due at the moment or before, or zero.
func (t ticks) dueBy(moment row.Time) row.Time { return t.prev(moment.Add(-t.jitter) + 1) }

// dueAfter returns the first tick that is due after the moment, or zero.
func (t ticks) dueAfter(moment row.Time) row.Time { return t.next(moment.Add(-t.jitter)) }

// count returns how many ticks there are from the first to the last of a span, both included and counted up to a bound.
// It does not walk over dense ticks.
func (t ticks) count(first, last row.Time) int {
	if first.IsZero() || first > last {
		return 0
	}
	counts, _ := t.spec.Counts([]time.Time{first.Std(), last.Add(time.Second).Std()})
	return min(counts[0]-t.aheadIn(first, last), mostCounted)
}

// aheadIn returns how many ticks of a span were skipped ahead.
func (t ticks) aheadIn(first, last row.Time) (n int) {
	for _, r := range t.ahead {
		n += ticks{spec: t.spec}.count(max(first, r.Tick), min(last, r.Until))
	}
	return n
}

// back returns the tick that is n ticks before one, or the first one after the bound if that is later.
func (t ticks) back(tick, bound row.Time, n int) row.Time {
	from := tick
	for window := time.Second; from > bound && t.count(from, tick) <= n; window *= 2 {
		from = max(bound, tick.Add(-window))
	}
	// The last moment with so many ticks from there on is the tick.
	seconds := int(tick.Sub(from) / time.Second)
	after := sort.Search(seconds+1, func(i int) bool {
		return t.count(from.Add(time.Duration(i)*time.Second), tick) <= n
	})
	if after == 0 {
		return t.next(from - 1)
	}
	return from.Add(time.Duration(after-1) * time.Second)
}

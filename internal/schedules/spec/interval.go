package spec

import (
	"strings"
	"time"
)

// interval is a line such as "@every 24h/2h". It counts from the Unix epoch, so that a restart changes nothing.
type interval struct{ every, phase int64 }

// next implements [line]. Without excludes there is nothing to search. With them it goes day by day, and remembers the
// days that were left out whole.
func (i interval) next(s *Spec, from, until int64) (int64, bool) {
	tick := i.from(from)
	if len(s.excludes) == 0 {
		return tick, tick < until
	}
	until = min(until, from+s.horizon())
	type kind struct {
		inForce uint16
		first   int64 // tick, as a second of the day
	}
	empty := make(map[kind]bool)
	for g := s.segmentAt(tick); tick < until && s.spend(1); {
		if tick >= g.until {
			g = s.segmentAt(tick)
		}
		d := dateOf(div(tick+g.offset, day))
		begin := d.number*day - g.offset
		end := min(begin+day, g.until, until)
		k := kind{s.excludes.on(d), tick - begin}
		whole := end == begin+day // else a clock change or the end of the search cuts it off
		if !whole || !empty[k] {
			if free, found := i.free(s.excludes, k.inForce, begin, tick, end); found {
				return free, true
			}
			empty[k] = whole
			s.spend(costOfEmptyDay)
		}
		tick = i.from(end)
	}
	return 0, false
}

// from returns the first tick at or after a second.
func (i interval) from(second int64) int64 { return second + mod(i.phase-second, i.every) }

// free returns the first tick in [tick, end) that no exclude in force leaves out. The local day begins at begin.
func (i interval) free(x excludes, inForce uint16, begin, tick, end int64) (int64, bool) {
	for tick < end {
		second := int(tick - begin)
		minute := second / 60
		out := x.seconds(inForce, minute/60, minute%60)
		if out == always.second {
			tick = i.from(begin + int64(minute+1)*60)
			continue
		}
		for ; tick < end && int(tick-begin)/60 == minute; tick += i.every {
			if !has(out, int(tick-begin)%60) {
				return tick, true
			}
		}
	}
	return 0, false
}

func (i interval) String() string {
	text := "@every " + span(i.every)
	if i.phase != 0 {
		text += "/" + span(i.phase)
	}
	return text
}

// span writes whole seconds without parts that are zero.
func span(seconds int64) string {
	text := (time.Duration(seconds) * time.Second).String()
	if cut, ok := strings.CutSuffix(text, "m0s"); ok {
		text = cut + "m"
	}
	if cut, ok := strings.CutSuffix(text, "h0m"); ok {
		text = cut + "h"
	}
	return text
}

// mod returns the remainder of the division that rounds down.
func mod(a, b int64) int64 { return (a%b + b) % b }

// instant is a line such as "@at 2027-01-01T09:00:00Z".
type instant int64

func (i instant) next(s *Spec, from, until int64) (int64, bool) {
	tick := int64(i)
	return tick, from <= tick && tick < until && !s.excludes.cover(s.local(tick))
}

func (i instant) String() string { return "@at " + time.Unix(int64(i), 0).UTC().Format(time.RFC3339) }

// wallTime is a line such as "@at 2027-01-01T09:00": one local second.
type wallTime int64

func (w wallTime) next(s *Spec, from, until int64) (int64, bool) {
	// No offset reaches a day, and no gap that a rule is for is longer.
	from, until = max(from, int64(w)-2*day), min(until, int64(w)+2*day)
	return s.search(w, s.rule, from, until)
}

func (w wallTime) match(s *Spec, from, until int64) (int64, bool) {
	local := int64(w)
	return local, from <= local && local < until && !s.excludes.cover(local)
}

func (w wallTime) String() string {
	return "@at " + strings.TrimSuffix(time.Unix(int64(w), 0).UTC().Format("2006-01-02T15:04:05"), ":00")
}

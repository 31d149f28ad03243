package spec

import (
	"fmt"
	"slices"
	"time"
)

// Tick is a tick with what a user may want to know of it.
type Tick struct {
	Time    time.Time // in the zone of the spec
	Note    string    // what a clock change has done to it; "" for most
	Dropped bool      // the tick does not run: the rule drops it
}

// Preview returns the next n ticks after the moment, and those that the rule for clock changes drops between them. It
// is not complete when the search got too expensive, which only excludes can make it.
func (s *Spec) Preview(after time.Time, n int) (ticks []Tick, complete bool) {
	s = s.bounded(leastCost + n*costOfTick)
	from := after.Unix() + 1
	for range n {
		tick, found := s.next(from, none)
		ticks = append(ticks, s.dropped(from, min(tick, from+s.horizon()), found)...)
		if !s.spend(0) {
			return ticks, false
		}
		if !found {
			break
		}
		ticks = append(ticks, Tick{Time: s.moment(tick, true), Note: s.note(tick)})
		from = tick + 1
	}
	return ticks, true
}

// dropped returns what a gap or a second pass in [from, until) keeps from running.
func (s *Spec) dropped(from, until int64, found bool) (ticks []Tick) {
	if !found {
		return nil
	}
	for g := s.segmentAt(from); g.until <= until; {
		near, named := s.named(g.until-farthest, until+farthest)
		if !named {
			break
		}
		if near-farthest >= g.until {
			g = s.segmentAt(near - farthest)
			continue
		}
		g = s.segmentAt(g.until)
		local, named := s.named(g.from+g.before, g.from+g.offset)
		if named && !moves(s.rule) {
			ticks = append(ticks, Tick{
				Time: s.moment(g.from, true), Note: clock(local) + " does not exist", Dropped: true,
			})
		}
		if local, named = s.named(g.from+g.offset, g.from+g.before); named && !repeats(s.rule) {
			if second := local - g.offset; second < until {
				ticks = append(ticks, Tick{
					Time: s.moment(second, true), Note: "second pass of " + clock(local), Dropped: true,
				})
			}
		}
	}
	return ticks
}

// note says what the rule has done to a tick.
func (s *Spec) note(tick int64) string {
	g := s.segmentAt(tick)
	local := tick + g.offset
	if tick == g.from && g.shift() > 0 {
		if named, ok := s.named(local-g.shift(), local); ok && moves(s.rule) {
			return "moved: " + clock(named) + " does not exist"
		}
	}
	if _, named := s.named(local, local+1); !named {
		return ""
	}
	if g.shift() < 0 && tick < g.from-g.shift() {
		return "second pass of " + clock(local)
	}
	if g.until == none {
		return ""
	}
	if next := s.segmentAt(g.until); next.shift() < 0 && local >= next.from+next.offset {
		return "first pass of " + clock(local)
	}
	return ""
}

// named returns the first local second of [from, until) that a line names and the rule applies to.
func (s *Spec) named(from, until int64) (first int64, found bool) {
	for _, l := range s.lines {
		m, ok := hasHours(l)
		if !ok {
			continue
		}
		if local, ok := m.match(s, from, until); ok {
			first, until, found = local, local, true
		}
	}
	return first, found
}

// hasHours returns a line that names times of day.
func hasHours(l line) (matcher, bool) {
	m, ok := l.(matcher)
	f, isCron := l.(fields)
	return m, ok && (!isCron || !f.everyHour())
}

// clock writes the time of day of a local second.
func clock(local int64) string {
	t := time.Unix(local, 0).UTC()
	if t.Second() == 0 {
		return t.Format("15:04")
	}
	return t.Format(time.TimeOnly)
}

// EarlyWarning is the warning of a preview that is not complete.
const EarlyWarning = "the search for ticks ended early: the excludes leave out too much"

// UTCWarning is the warning of a definition with times of day and without a zone.
const UTCWarning = "times of day are in UTC: no zone is given"

// Warnings says where a line may mean something else than in other systems.
func (s *Spec) Warnings() (warnings []string) {
	if s.utc && slices.ContainsFunc(s.lines, func(l line) bool { _, ok := hasHours(l); return ok }) {
		warnings = append(warnings, UTCWarning)
	}
	for _, l := range s.lines {
		f, ok := l.(fields)
		if ok && !f.anyDom && !f.anyDow {
			warnings = append(warnings, fmt.Sprintf("%q runs on days that match the day of the month or the day "+
				"of the week; some crons want both when a field begins with a star", f))
		}
	}
	return warnings
}

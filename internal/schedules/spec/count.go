package spec

import (
	"math/bits"
	"slices"
	"time"
)

// scattered is how many ticks in a row are searched one by one before whole minutes are counted. A search costs as much
// as some hundred minutes.
const scattered = 3

// Counts returns how many ticks there are from each of the moments, which ascend, until the next one. It counts dense
// ticks by the minute: a month of a tick each second takes a millisecond. It is not complete when the search got too
// expensive, which only excludes can make it.
func (s *Spec) Counts(moments []time.Time) (counts []int, complete bool) {
	s = s.bounded(leastCost + len(moments)*costOfTick)
	counts = make([]int, max(len(moments)-1, 0))
	for i := range counts {
		counts[i] = s.count(second(moments[i]), second(moments[i+1]))
	}
	return counts, s.spend(0)
}

// second returns the first whole second at or after a moment.
func second(at time.Time) int64 { return at.Add(time.Second - 1).Unix() }

// count returns how many ticks there are in [from, until).
func (s *Spec) count(from, until int64) (n int) {
	from, until = max(from, s.start), min(until, s.end+1)
	if i, ok := s.lines[0].(interval); ok && len(s.lines) == 1 && len(s.excludes) == 0 {
		return int(max(until-i.from(from)+i.every-1, 0) / i.every)
	}
	for from < until {
		for range scattered {
			tick, found := s.next(from, until)
			if !found {
				return n
			}
			n, from = n+1, tick+1
		}
		g := s.segmentAt(from)
		if from == g.from {
			continue // what a gap has left out may run here
		}
		end, lines := min(until, g.until), s.lines
		if again := g.from - g.shift(); from < again && !repeats(s.rule) {
			end, lines = min(until, again), slices.DeleteFunc(slices.Clone(lines), func(l line) bool {
				_, once := hasHours(l)
				return once
			})
		}
		n += s.countMinutes(lines, from, end, g.offset)
		from = end
	}
	return n
}

// minute is a minute of a local day.
type minute struct {
	begin        int64 // the second of UTC
	local        int64 // the same second of the local clock
	date         date
	hour, minute int
}

// countMinutes is count for some of the lines, in a time without a clock change.
func (s *Spec) countMinutes(lines []line, from, until, offset int64) (n int) {
	var m minute
	var inForce uint16
	matching := make([]line, 0, len(lines))
	for at := from; at < until; at = m.begin + 60 {
		if at > from && m.minute < 59 {
			m.begin, m.local, m.minute = m.begin+60, m.local+60, m.minute+1
		} else {
			local := at + offset
			m.local = local - mod(local, 60)
			m.begin = m.local - offset
			m.hour, m.minute = int(mod(m.local, day)/3600), int(mod(m.local, 3600)/60)
			if number := div(local, day); number != m.date.number || at == from {
				m.date = dateOf(number)
				inForce = s.excludes.on(m.date)
				matching = slices.DeleteFunc(append(matching[:0], lines...), func(l line) bool {
					f, ok := l.(fields)
					return ok && !f.matchDay(m.date)
				})
			}
		}
		var set uint64
		for _, l := range matching {
			set |= l.seconds(&m)
		}
		set &^= s.excludes.seconds(inForce, m.hour, m.minute)
		first, last := max(from-m.begin, 0), min(until-m.begin, 60)-1
		n += bits.OnesCount64(set & all(int(first), int(last)))
	}
	return n
}

// seconds implements [line], on a day that the line matches.
func (f fields) seconds(m *minute) uint64 {
	if !has(f.hour, m.hour) || !has(f.minute, m.minute) {
		return 0
	}
	return f.second
}

// seconds implements [line].
func (i interval) seconds(m *minute) (set uint64) {
	for tick := i.from(m.begin); tick < m.begin+60; tick += i.every {
		set |= 1 << (tick - m.begin)
	}
	return set
}

// seconds implements [line].
func (i instant) seconds(m *minute) uint64 { return within(int64(i), m.begin) }

// seconds implements [line].
func (w wallTime) seconds(m *minute) uint64 { return within(int64(w), m.local) }

// within returns the set of a second, if the minute has it.
func within(second, begin int64) uint64 {
	if second < begin || second >= begin+60 {
		return 0
	}
	return 1 << (second - begin)
}

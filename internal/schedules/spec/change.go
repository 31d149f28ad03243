package spec

import (
	"time"

	"github.com/delaytask/delaytask"
)

// rules lists the rules for clock changes.
var rules = []delaytask.DST{delaytask.DSTOnce, delaytask.DSTSkip, delaytask.DSTBoth, delaytask.DSTLiteral}

// moves reports whether a local time in a gap runs at the end of the gap.
func moves(r delaytask.DST) bool { return r == delaytask.DSTOnce || r == delaytask.DSTBoth }

// repeats reports whether a local time that comes twice runs twice.
func repeats(r delaytask.DST) bool { return r == delaytask.DSTBoth || r == delaytask.DSTLiteral }

// longestShift is the largest change of an offset that a rule is for. A larger one is a zone that moved, as Samoa did
// over the date line, and no clock change. cronie has the same bound.
const longestShift = 3 * 60 * 60

// farthest is more than any offset of a zone, and than the distance of any two. Where no line names a local second this
// close, no clock change matters, so a search jumps over it.
const farthest = 2 * day

// segment is the time between two changes of a zone's offset.
type segment struct {
	from, until int64 // in UTC
	offset      int64
	before      int64 // the offset until from
}

func (s *Spec) segmentAt(second int64) segment {
	s.spend(costOfSegment)
	offset := s.offset(second)
	g := segment{from: -none, until: none, offset: offset, before: offset}
	start, end := time.Unix(second, 0).In(s.zone).ZoneBounds()
	if !start.IsZero() {
		g.from = start.Unix()
		if s.offset(g.from) == g.offset {
			g.before = s.offset(g.from - 1)
		}
	}
	// ZoneBounds begins the year anew where the rule for the future gives the changes, and so hides the last change
	// that has a date of its own. A change matters for as long as the longest shift.
	if early := second - longestShift; g.before == g.offset && s.offset(early) != g.offset {
		late := second
		for late-early > 1 {
			if middle := early + (late-early)/2; s.offset(middle) == g.offset {
				late = middle
			} else {
				early = middle
			}
		}
		g.from, g.before = late, s.offset(early)
	}
	if !end.IsZero() {
		g.until = end.Unix()
	}
	if g.until <= second {
		// ZoneBounds ends each year after 365 days where the rule for the future gives the changes, so 31 December of a
		// leap year lies behind its own end. No zone changes its offset there.
		g.from = second - mod(second, day)
		g.until, g.before = g.from+day, g.offset
	}
	return g
}

// shift returns by how much the offset grew when the segment began, or 0 when the rules do not care.
func (g segment) shift() int64 {
	if d := g.offset - g.before; -longestShift <= d && d <= longestShift {
		return d
	}
	return 0
}

// matcher finds the local seconds that a line names.
type matcher interface {
	// match returns the first local second in [from, until) that the line names and that is not excluded.
	match(s *Spec, from, until int64) (int64, bool)
}

// search returns the first tick of a matcher in [from, until), by the rule.
func (s *Spec) search(m matcher, rule delaytask.DST, from, until int64) (int64, bool) {
	for from < until && s.spend(1) {
		g := s.segmentAt(from)
		if from == g.from && g.shift() > 0 && moves(rule) {
			_, named := m.match(s, g.from+g.before, g.from+g.offset)
			if named && !s.excludes.cover(g.from+g.offset) {
				return g.from, true
			}
		}
		if !repeats(rule) {
			from = max(from, g.from-min(g.shift(), 0))
		}
		end := min(g.until, until)
		if local, found := m.match(s, from+g.offset, end+g.offset); found {
			return local - g.offset, true
		}
		local, found := m.match(s, end+g.offset-farthest, until+farthest)
		if !found {
			break
		}
		from = max(from, end, local-farthest)
	}
	return 0, false
}

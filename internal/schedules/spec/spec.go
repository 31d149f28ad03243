package spec

import (
	"math"
	"time"

	"github.com/delaytask/delaytask"
)

// Spec is a definition that was read. It does not change and is safe for concurrent use.
type Spec struct {
	zone     *time.Location
	utc      bool // no zone was given
	rule     delaytask.DST
	start    int64 // of the first second that may be a tick
	end      int64 // of the last one
	lines    []line
	excludes excludes

	left *int // how much a search may still cost, see spend; nil: no bound
}

// Zone returns the zone of its local times.
func (s *Spec) Zone() *time.Location { return s.zone }

// horizon is how far ahead a search looks. Each excluded date may hide a tick.
func (s *Spec) horizon() int64 {
	far := int64(recurrence)
	for _, x := range s.excludes {
		if x.once {
			far += recurrence
		}
	}
	return far
}

// line finds the ticks of one line.
type line interface {
	// next returns the first tick in [from, until) that is not excluded. The seconds are in UTC.
	next(s *Spec, from, until int64) (int64, bool)
	// seconds returns which seconds of a minute are ticks, where no clock change is near and nothing is excluded.
	seconds(m *minute) uint64
	// String returns the canonical form.
	String() string
}

const (
	day = 24 * 60 * 60
	// recurrence is how far apart ticks of a cron line may be: 29 February falls on a given day of the week once in 28
	// years, and once in 40 when a year such as 2100 has none.
	recurrence = 41 * 366 * day
	none       = math.MaxInt64
)

// earliest and latest are the bounds of all ticks. Every supported database stores what lies between.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC).Unix()
	latest   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - 1
)

// Next returns the first tick after the moment, or the zero time. It looks 41 years ahead, 41 more for each excluded
// date, and farther only for single times and intervals without excludes. It stops after some thousand days that the
// excludes leave out whole.
func (s *Spec) Next(after time.Time) time.Time {
	s = s.bounded(leastCost)
	return s.moment(s.next(after.Unix()+1, none))
}

// Prev returns the last tick before the moment, or the zero time.
//
// The search goes back in windows of twice the length until one holds a tick, and then halves that window. So it asks
// nothing but what Next can answer, and always agrees with it.
func (s *Spec) Prev(before time.Time) time.Time {
	s = s.bounded(costOfPrev)
	until := before.Unix()
	if before.Nanosecond() > 0 {
		until++
	}
	until = min(until, s.end+1)
	for window := int64(1); ; window *= 2 {
		from := max(until-window, s.start)
		if first, found := s.next(from, until); found {
			return s.moment(s.last(first, until), found)
		}
		if from <= s.start {
			return time.Time{}
		}
	}
}

// last returns the last tick of [tick, until), where tick is one.
func (s *Spec) last(tick, until int64) int64 {
	for from, end := tick+1, until; from < end; {
		middle := from + (end-from)/2
		if later, found := s.next(middle, end); found {
			tick, from = later, later+1
		} else {
			end = middle
		}
	}
	return tick
}

// next returns the first tick in [from, until).
func (s *Spec) next(from, until int64) (tick int64, found bool) {
	from, until = max(from, s.start), min(until, s.end+1)
	if from >= until {
		return 0, false
	}
	// One line may have to be searched for many years, where another one has a tick in the next hour.
	if near := from + 60*60; len(s.lines) > 1 && near < until {
		if tick, found = s.first(from, near); found {
			return tick, true
		}
		if near = from + 7*day; near < until {
			if tick, found = s.first(from, near); found {
				return tick, true
			}
		}
	}
	return s.first(from, until)
}

// first returns the first tick of a line in [from, until).
func (s *Spec) first(from, until int64) (tick int64, found bool) {
	for _, l := range s.lines {
		if t, ok := l.next(s, from, until); ok {
			tick, until, found = t, t, true
		}
	}
	return tick, found
}

func (s *Spec) moment(second int64, found bool) time.Time {
	if !found {
		return time.Time{}
	}
	return time.Unix(second, 0).In(s.zone)
}

// local returns the local second of an instant.
func (s *Spec) local(second int64) int64 { return second + s.offset(second) }

// offset returns by how much the zone is ahead of UTC at an instant.
func (s *Spec) offset(second int64) int64 {
	_, offset := time.Unix(second, 0).In(s.zone).Zone()
	return int64(offset)
}

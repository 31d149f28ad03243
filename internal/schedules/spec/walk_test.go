package spec_test

import "time"

// longest is the longest clock change that rules apply to.
const longest = 3 * 60 * 60

// walk is a stretch of UTC, from inclusive and to exclusive, one moment after the other.
type walk struct {
	from, to int64
	step     int // 60, or 1 where the zone knows other offsets than whole minutes
	moments  []moment
	gaps     []gap
}

// moment is what a clock on the wall shows.
type moment struct {
	year, month, day, weekday, hour, minute, second int

	last  bool // the last day of its month
	again bool // in the second pass of a local time that comes twice
}

// gap holds what the clock skipped until at.
type gap struct {
	at    int64
	named []moment
	end   moment // what it shows at once after the gap
}

func momentOf(local int64) moment {
	t := time.Unix(local, 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return moment{year: year, month: int(month), day: day, weekday: int(t.Weekday()), hour: hour, minute: minute,
		second: second, last: t.Add(24*time.Hour).Day() == 1}
}

func offset(zone *time.Location, at int64) int64 {
	_, seconds := time.Unix(at, 0).In(zone).Zone()
	return int64(seconds)
}

// newWalk visits the minutes from from to to, which are rounded to whole minutes.
func newWalk(zone *time.Location, from, to int64) *walk {
	from, to = from-from%60, to-to%60
	if w := stroll(zone, from, to, 60); w != nil {
		return w
	}
	return stroll(zone, from, to, 1)
}

// stroll returns nil when a step is too long for the zone.
func stroll(zone *time.Location, from, to int64, step int) *walk {
	w := &walk{from: from, to: to, step: step, moments: make([]moment, 0, (to-from)/int64(step))}
	stride := int64(step)
	at := from - longest - stride // a change before the walk may have its second pass within
	before, again := offset(zone, at), int64(0)
	for at += stride; at < to; at += stride {
		now := offset(zone, at)
		change := now - before
		if now%stride != 0 || change != 0 && offset(zone, at-1) != before {
			return nil
		}
		if change < 0 && change >= -longest {
			again = max(again, at-change)
		}
		if change > 0 && change <= longest && at >= from {
			g := gap{at: at, end: momentOf(at + now)}
			for local := at + before; local < at+now; local += stride {
				g.named = append(g.named, momentOf(local))
			}
			w.gaps = append(w.gaps, g)
		}
		if at >= from {
			m := momentOf(at + now)
			m.again = at < again
			w.moments = append(w.moments, m)
		}
		before = now
	}
	return w
}

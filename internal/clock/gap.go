package clock

import "time"

// maxGap is how much the wall clock may gain on the monotonic clock between two ticks. More than that is a suspend, or somebody
// set the wall clock; to treat the second like the first costs one reading and one scan.
const maxGap = time.Second

// Gap notices suspends: on Linux the monotonic clock and every timer stand still meanwhile, the wall clock does not. The zero
// value is ready to use. It is for one goroutine.
type Gap struct {
	start time.Time // the origin of mono
	wall  time.Time
	mono  time.Duration
}

// Tick returns how much the wall clock has gained since the last tick and whether that was a suspend. The first tick never is.
func (g *Gap) Tick() (time.Duration, bool) {
	now := time.Now()
	if g.start.IsZero() {
		g.start, g.wall = now, now.Round(0)
	}
	return g.tick(now.Round(0), now.Sub(g.start))
}

func (g *Gap) tick(wall time.Time, mono time.Duration) (time.Duration, bool) {
	passed, monoPassed := wall.Sub(g.wall), mono-g.mono
	g.wall, g.mono = wall, mono
	return passed - monoPassed, gapped(passed, monoPassed)
}

// gapped reports a suspend between two moments that are so far apart by the wall clock and by the monotonic one.
func gapped(wall, mono time.Duration) bool { return wall-mono > maxGap }

// wallOf is a moment by the wall clock alone.
func wallOf(t time.Time) time.Time { return t.Round(0) }

package decide

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Counting and going back agree with a walk from tick to tick.
func TestCountsAgreeWithAWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, lines := range [][]string{
		{everyMinute}, {"@every 7s"}, {"*/5 * * * * *", "!* 3 * * *"}, {"30 2 * * *", "@every 90m"}, {"0 0 29 2 *"},
	} {
		w := ticks{spec: parse(t, lines...)}
		for range 20 {
			from := w.next(midnight.Add(time.Duration(random.IntN(100_000)) * time.Second))
			span := time.Duration(random.IntN(20_000)) * time.Second
			last, n := from, 0
			var walked []row.Time
			for tick := from; !tick.IsZero() && tick <= from.Add(span); tick = w.next(tick) {
				last, n, walked = tick, n+1, append(walked, tick)
			}
			if got := w.count(from, from.Add(span)); got != n {
				t.Errorf("%q: %d ticks, want %d", lines, got, n)
			}
			back := random.IntN(50)
			if got, want := w.back(last, from, back), walked[max(0, n-1-back)]; got != want {
				t.Errorf("%q: %d before %v is %v, want %v", lines, back, last, got, want)
			}
		}
	}
}

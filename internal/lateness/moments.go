package lateness

import (
	"math/rand/v2"
	"time"
)

// Moments draws n different microseconds of the span, which must have as many.
func Moments(n int, span time.Duration) []time.Duration {
	drawn := make(map[time.Duration]bool, n)
	all := make([]time.Duration, 0, n)
	for len(all) < n {
		if m := rand.N(span).Truncate(time.Microsecond); !drawn[m] {
			drawn[m] = true
			all = append(all, m)
		}
	}
	return all
}

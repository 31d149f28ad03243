package lateness

import (
	"math"
	"slices"
	"time"
)

// Percentile takes the nearest rank, so that every figure is one that was measured. Of nothing it is 0.
func Percentile(durations []time.Duration, p float64) time.Duration {
	n := len(durations)
	if n == 0 {
		return 0
	}
	rank := int(math.Ceil(float64(n) * p / 100 * (1 - 1e-12))) // a float makes a little more than 40,959 of 99.9 % of 41,000
	return slices.Sorted(slices.Values(durations))[max(rank, 1)-1]
}

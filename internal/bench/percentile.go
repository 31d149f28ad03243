package bench

import (
	"slices"
	"time"
)

// percentile takes the nearest rank: every figure is one that was measured. Of nothing it is 0.
func percentile(durations []time.Duration, p int) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(durations))[(len(durations)*p+99)/100-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

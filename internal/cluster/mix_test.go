package cluster

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// idsAt makes ids as a process at a steady rate does, keeping one of every step.
func idsAt(perSecond, step, count int) []int64 {
	now := noon
	ids := NewIDs(9, func() time.Time { return now })
	var kept []int64
	for n := 0; len(kept) < count; n++ {
		if perSecond > 0 {
			now = now.Add(time.Second / time.Duration(perSecond))
		}
		if id := ids.Next(); n%step == 0 {
			kept = append(kept, id)
		}
	}
	return kept
}

// unevenness is chi-square in standard deviations from what chance gives: about 0 when even, below 6 with near certainty.
func unevenness(ids []int64, total int, share func(int64) int) float64 {
	counts := make([]float64, total)
	for _, id := range ids {
		counts[share(id)]++
	}
	want := float64(len(ids)) / float64(total)
	var chi2 float64
	for _, got := range counts {
		chi2 += (got - want) * (got - want) / want
	}
	free := float64(total - 1)
	return (chi2 - free) / math.Sqrt(2*free)
}

func TestMixDividesIDsEvenly(t *testing.T) {
	t.Parallel()
	worstPlain := 0.0
	for _, perSecond := range []int{10, 1000, 0} { // 0: in bulk, all at one moment
		for _, step := range []int{1, 3, 7} {
			t.Run(fmt.Sprintf("%d per second, step %d", perSecond, step), func(t *testing.T) {
				ids := idsAt(perSecond, step, 20_000)
				for total := 2; total <= 64; total++ {
					mixed := unevenness(ids, total, func(id int64) int { return int(Mix(id) % uint64(total)) })
					if mixed > 8 {
						t.Errorf("total %d: chi-square is %.1f standard deviations off", total, mixed)
					}
					worstPlain = max(worstPlain, unevenness(ids, total, func(id int64) int { return int(id % int64(total)) }))
				}
			})
		}
	}
	if worstPlain < 100 {
		t.Errorf("the plain id is never worse than %.1f standard deviations: this test would not notice a missing mix",
			worstPlain)
	}
}

func TestMixNeverChanges(t *testing.T) {
	t.Parallel()
	// The first outputs of SplitMix64 for the seeds 0 and 1234567, as published with the generator.
	for seed, want := range map[int64]uint64{0: 0xe220a8397b1dcdaf, 1234567: 6457827717110365317} {
		if got := Mix(seed); got != want {
			t.Errorf("Mix(%d) = %#x, want %#x: nodes of two versions would disagree", seed, got, want)
		}
	}
}

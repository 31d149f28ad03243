package timer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

func atSizes(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range []int{1000, 250_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, n) })
	}
}

// A timer's normal life: the earliest leaves, a later one comes.
func BenchmarkPopAndSet(b *testing.B) {
	atSizes(b, func(b *testing.B, n int) {
		var h Heap
		defer h.Clear()
		fill(&h, n)
		for b.Loop() {
			e, _ := h.PopBefore(farFuture)
			e.ID++
			e.Due += row.Time(rand.Int64N(1 << 40))
			h.Set(e)
		}
	})
}

// Filling shows besides the average the longest single Set: it grows the index.
func BenchmarkFill(b *testing.B) {
	atSizes(b, func(b *testing.B, n int) {
		var longest time.Duration
		for b.Loop() {
			var h Heap
			for range n {
				e := Entry{ID: rand.Int64(), Due: row.Time(rand.Int64N(1 << 40))}
				start := time.Now()
				h.Set(e)
				longest = max(longest, time.Since(start))
			}
			h.Clear()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
		b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
	})
}

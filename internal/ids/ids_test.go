package ids

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func TestIDCarriesTimeAndNode(t *testing.T) {
	t.Parallel()
	id := NewSource(17, at(noon.Add(250*time.Microsecond))).Next()
	saved, node, _ := Split(id)
	if !saved.Equal(noon) || node != 17 || !Valid(id) {
		t.Fatalf("Split(%d) = %v, node %d, valid %t; want %v, node 17, valid", id, saved, node, Valid(id), noon)
	}
}

func TestIDsSequenceGoesOnAcrossMilliseconds(t *testing.T) {
	t.Parallel()
	now := noon
	ids := NewSource(1, func() time.Time { return now })
	_, _, before := Split(ids.Next())
	now = now.Add(time.Second)
	_, _, after := Split(ids.Next())
	if want := (before + 1) & seqMask; after != want {
		t.Fatalf("sequence went from %d to %d, want %d", before, after, want)
	}
}

func TestIDsBorrowFromTheNextMillisecond(t *testing.T) {
	t.Parallel()
	ids := NewSource(1, at(noon))
	var last int64
	for range 3 * (seqMask + 1) {
		id := ids.Next()
		if id <= last {
			t.Fatalf("id %d after %d", id, last)
		}
		last = id
	}
	if saved, _, _ := Split(last); saved.Sub(noon) > 3*time.Millisecond {
		t.Fatalf("12,288 ids borrowed %v, want at most 3 ms", saved.Sub(noon))
	}
}

func TestIDsOfABrokenClockArePositive(t *testing.T) {
	t.Parallel()
	ids := NewSource(0, at(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)))
	if id := ids.Next(); !Valid(id) {
		t.Fatalf("id %d is not valid", id)
	}
}

func TestValidRefusesNumbersOfOthers(t *testing.T) {
	t.Parallel()
	for _, id := range []int64{-1, 0, 1, 42, 1<<msShift - 1, math.MaxInt64 - reservedIDs + 1, math.MaxInt64} {
		if Valid(id) {
			t.Errorf("Valid(%d) = true", id)
		}
	}
}

func TestRandomNodeIsNeverLeased(t *testing.T) {
	t.Parallel()
	for range 10_000 {
		if n := RandomNode(); n < LeasedNodes || n > nodeMask {
			t.Fatalf("RandomNode() = %d", n)
		}
	}
}

func TestIDsOnlyGrowWhateverTheClockAndTheNodeDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		ids := NewSource(0, func() time.Time { return now })
		var last int64
		for range rapid.IntRange(1, 50).Draw(t, "turns") {
			now = now.Add(time.Duration(rapid.IntRange(-5000, 5000).Draw(t, "step")) * time.Millisecond)
			ids.Lease(rapid.IntRange(0, nodeMask).Draw(t, "node"), time.Now().Add(time.Hour))
			for range rapid.IntRange(1, 200).Draw(t, "ids") {
				id := ids.Next()
				if id <= last {
					t.Fatalf("id %d after %d", id, last)
				}
				last = id
			}
		}
	})
}

func TestIDsAreUniqueAcrossGoroutinesAndClockSteps(t *testing.T) {
	t.Parallel()
	var step atomic.Int64
	ids := NewSource(3, func() time.Time { return noon.Add(time.Duration(step.Load()) * time.Millisecond) })
	drawn := make([][]int64, 8)
	var wg sync.WaitGroup
	for i := range drawn {
		wg.Go(func() {
			for n := range 5000 {
				step.Store(int64(n%7 - 3*i))
				drawn[i] = append(drawn[i], ids.Next())
			}
		})
	}
	wg.Wait()
	for i, own := range drawn {
		if !slices.IsSorted(own) {
			t.Errorf("goroutine %d saw ids go backwards", i)
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(drawn...)))
	if n := len(slices.Compact(all)); n != len(drawn)*5000 {
		t.Fatalf("%d different ids of %d", n, len(drawn)*5000)
	}
}

func BenchmarkIDs(b *testing.B) {
	ids := NewSource(1, time.Now)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ids.Next()
		}
	})
}

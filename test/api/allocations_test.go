//go:build !race

package api

import (
	"math"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/request"
)

func TestTracingThatIsOffAllocatesNothing(t *testing.T) { // not in parallel: allocations of others would count
	s := delaytasktest.New(t)
	ctx, header, id := t.Context(), delaytask.WithHeader("a", "b"), delaytask.WithID(-1)
	fewest := func(f func()) (n float64) { // under the race detector pools drop what they hold
		n = math.MaxFloat64
		for range 100 {
			n = min(n, testing.AllocsPerRun(1, f))
		}
		return n
	}
	// A save that is refused for its arguments allocates what their check does.
	all := fewest(func() { _, _ = s.SaveDelayTask(ctx, "t", "body", 0, header, id) })
	checked := fewest(func() { _, _ = request.NewSave("t", "body", 0, request.Limits{}, header, id) })
	if all != checked {
		t.Errorf("%v allocations, want %v", all, checked)
	}
}

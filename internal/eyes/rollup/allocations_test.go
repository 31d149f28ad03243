//go:build !race

package rollup

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

func TestCountingAllocatesNothing(t *testing.T) {
	c := NewCounts()
	count := func() {
		c.Late("a", time.Millisecond)
		c.Event("a", delaytask.EventCompleted)
	}
	count()
	if n := testing.AllocsPerRun(100, count); n > 0 {
		t.Errorf("a task costs %v allocations, want none", n)
	}
}

package rollup

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// While minutes are taken, each task is in one of them.
func TestNothingIsCountedTwiceOrLost(t *testing.T) {
	c := NewCounts()
	const workers, each = 8, 5000
	var counting sync.WaitGroup
	for w := range workers {
		counting.Go(func() {
			for i := range each {
				tag := fmt.Sprint("t", i%5)
				c.Late(tag, time.Duration(w*each+i)*time.Microsecond)
				c.Event(tag, []delaytask.EventKind{delaytask.EventCompleted, delaytask.EventRetried,
					delaytask.EventFailed, delaytask.EventRescued, delaytask.EventSaved}[i%5])
			}
		})
	}
	done := make(chan struct{})
	go func() {
		counting.Wait()
		close(done)
	}()
	var all sum
	take := func() {
		for _, r := range c.Take() {
			all.add(&r)
		}
	}
	for running := true; running; take() {
		select {
		case <-done:
			running = false
		default:
		}
	}
	const want = workers * each / 5
	r := all.rollup()
	if r.Completed != want || r.Retried != want || r.Failed != want || r.Lost != want ||
		r.Late.Count() != workers*each || r.Max != (workers*each-1)*time.Microsecond {
		t.Errorf("of %d each, and of %d starts, %+v were counted", want, workers*each, r)
	}
}

func TestTagsBeyondTheBoundShareOneRow(t *testing.T) {
	c := NewCounts()
	for i := range MaxTags + 50 {
		c.Event(fmt.Sprint("t", i), delaytask.EventCompleted)
	}
	c.Event("of no processor!", delaytask.EventFailed)
	other := func(completed, failed int64, rows int) {
		t.Helper()
		taken := c.Take()
		last := taken[len(taken)-1]
		if len(taken) != rows || last.Tag != row.OtherTags || last.Completed != completed || last.Failed != failed {
			t.Errorf("%d rows, the last is %+v, want %d, and %d and %d", len(taken), last, rows, completed, failed)
		}
	}
	other(50, 1, MaxTags+1)
	c.Keep(func(tag string) bool { return tag != "t7" })
	for _, tag := range []string{"new", "newer"} {
		c.Event(tag, delaytask.EventCompleted)
	}
	other(1, 0, 2)
}

func BenchmarkCount(b *testing.B) {
	c := NewCounts()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for late := time.Duration(0); pb.Next(); late += time.Microsecond {
			c.Late("order.close", late%time.Second)
			c.Event("order.close", delaytask.EventCompleted)
		}
	})
}

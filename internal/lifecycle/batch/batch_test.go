package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// flight records batches; each takes a second, so what arrives meanwhile is the next batch.
type flight struct {
	mu      sync.Mutex
	batches [][]int
	now     int
	most    int // flushes at once
}

func (f *flight) flush(batch []int) {
	f.mu.Lock()
	f.batches = append(f.batches, batch)
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	_ = append(batch, -1) // a batch is its own, and what follows it is not changed
	time.Sleep(time.Second)
	f.mu.Lock()
	f.now--
	f.mu.Unlock()
}

func add(t *testing.T, c *Coalescer[int], items ...int) {
	t.Helper()
	for _, item := range items {
		if err := c.Add(item); err != nil {
			t.Fatalf("Add(%d): %v", item, err)
		}
	}
}

// busy puts an item in flight, so that nothing is taken before all that follows has been added.
func busy(t *testing.T, c *Coalescer[int]) {
	t.Helper()
	add(t, c, 0)
	synctest.Wait()
}

// coalescer returns one whose flushes must not panic, unless the config handles that.
func coalescer[T any](cfg Config[T]) *Coalescer[T] {
	if cfg.Panicked == nil {
		cfg.Panicked = func(_ []T, value any) { panic(value) }
	}
	return New(cfg)
}

func finish(t *testing.T, c *Coalescer[int]) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// fly plays with a coalescer until it is closed, and returns what was flushed.
func fly(t *testing.T, cfg Config[int], play func(t *testing.T, c *Coalescer[int])) *flight {
	t.Helper()
	f := &flight{}
	cfg.Flush = f.flush
	synctest.Test(t, func(t *testing.T) {
		c := coalescer(cfg)
		play(t, c)
		finish(t, c)
	})
	return f
}

func wantBatches(t *testing.T, f *flight, want ...[]int) {
	t.Helper()
	if !slices.EqualFunc(f.batches, want, slices.Equal) {
		t.Errorf("batches %v, want %v", f.batches, want)
	}
}

func itself(n int) int { return n }

func TestABatchIsWhatArrivedWhileTheLastWasInFlight(t *testing.T) {
	f := fly(t, Config[int]{}, func(t *testing.T, c *Coalescer[int]) {
		add(t, c, 1)
		synctest.Wait()
		add(t, c, 2, 3)
		time.Sleep(500 * time.Millisecond)
		add(t, c, 4)
		time.Sleep(600 * time.Millisecond)
		add(t, c, 5)
		time.Sleep(time.Minute)
		add(t, c, 6)
	})
	wantBatches(t, f, []int{1}, []int{2, 3, 4}, []int{5}, []int{6})
}

func TestBatchesAreBounded(t *testing.T) {
	for name, b := range map[string]struct {
		cfg   Config[int]
		items []int
		want  [][]int
	}{
		"ByItems": {Config[int]{MaxItems: 2}, []int{1, 2, 3, 4, 5}, [][]int{{0}, {1, 2}, {3, 4}, {5}}},
		"ByBytesAndALargerItemTravelsAlone": {
			Config[int]{MaxBytes: 10, Size: itself}, []int{4, 6, 1, 99, 2, 3, 6},
			[][]int{{0}, {4, 6}, {1}, {99}, {2, 3}, {6}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fly(t, b.cfg, func(t *testing.T, c *Coalescer[int]) {
				busy(t, c)
				add(t, c, b.items...)
			})
			wantBatches(t, f, b.want...)
		})
	}
}

func TestAFullQueueRefusesAtOnce(t *testing.T) {
	f := fly(t, Config[int]{QueueBytes: 10, Size: itself}, func(t *testing.T, c *Coalescer[int]) {
		add(t, c, 1)
		synctest.Wait()
		add(t, c, 99) // fits, because nothing else waits
		if err := c.Add(1); !errors.Is(err, ErrFull) {
			t.Errorf("Add to a full queue: %v", err)
		}
		time.Sleep(1500 * time.Millisecond)
		add(t, c, 4, 6)
		if err := c.Add(1); !errors.Is(err, ErrFull) {
			t.Errorf("Add to a full queue: %v", err)
		}
	})
	wantBatches(t, f, []int{1}, []int{99}, []int{4, 6})
}

func TestFlushesAtOnceAreBounded(t *testing.T) {
	for name, b := range map[string]struct {
		cfg  Config[int]
		want [][]int
	}{
		"ByTheFlushers": {Config[int]{Flushers: 3, MaxItems: 1},
			[][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}}},
		"AnotherBeginsWhenEnoughWaits": {Config[int]{Flushers: 2, MoreAt: 3}, [][]int{{0}, {1, 2, 3}, {4, 5, 6}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := fly(t, b.cfg, func(t *testing.T, c *Coalescer[int]) {
				for i := range 7 {
					add(t, c, i)
					synctest.Wait()
				}
			})
			wantBatches(t, f, b.want...)
			if f.most != b.cfg.Flushers {
				t.Errorf("%d flushes at once, want %d", f.most, b.cfg.Flushers)
			}
		})
	}
}

func TestAStreamIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushed []time.Time
		var items int
		c := coalescer(Config[int]{Pace: every(5 * time.Millisecond), MaxItems: 10, Flush: func(batch []int) {
			flushed = append(flushed, time.Now())
			items += len(batch)
		}})
		began := time.Now()
		for i := range 100 {
			add(t, c, i)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if !flushed[0].Equal(began) {
			t.Errorf("the first item waited %v", flushed[0].Sub(began))
		}
		if len(flushed) > 21 {
			t.Errorf("%d flushes in 100 ms, want one every 5 ms", len(flushed))
		}
		time.Sleep(5 * time.Millisecond)
		flushed = nil
		add(t, c, 1)
		synctest.Wait()
		add(t, c, make([]int, 9)...)
		synctest.Wait()
		if len(flushed) != 1 {
			t.Errorf("%d flushes at once, want one of the single item: the rest comes too soon after it", len(flushed))
		}
		finish(t, c)
		if items != 110 {
			t.Errorf("%d items were flushed, want 110", items)
		}
	})
}

func TestAFullBatchIsNotPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var batches []int
		c := coalescer(Config[int]{Pace: every(time.Hour), MaxItems: 2,
			Flush: func(batch []int) { batches = append(batches, len(batch)) }})
		began := time.Now()
		for _, items := range [][]int{{1}, {2}, {3, 4}} {
			add(t, c, items...)
			synctest.Wait()
		}
		if !slices.Equal(batches, []int{1, 2}) {
			t.Errorf("batches of %v at once, want the single item and the full batch", batches)
		}
		finish(t, c)
		if took := time.Since(began); took > 0 || !slices.Equal(batches, []int{1, 2, 1}) {
			t.Errorf("closed after %v and batches of %v: a coalescer that closes has no time to lose", took, batches)
		}
	})
}

func TestCloseFlushesWhatIsQueuedAndRefusesMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flight{}
		c := coalescer(Config[int]{Flush: f.flush, MaxItems: 1})
		add(t, c, 1, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close with too little time: %v", err)
		}
		if err := c.Add(3); !errors.Is(err, ErrClosed) {
			t.Errorf("Add after Close: %v", err)
		}
		for range 2 {
			if err := c.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if f.now != 0 {
			t.Error("Close did not wait for the flush in flight")
		}
		wantBatches(t, f, []int{1}, []int{2})
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close of a closed coalescer, with an ended context: %v", err)
		}
	})
}

func TestABrokenFlushDoesNotWedge(t *testing.T) {
	for name, breakOff := range map[string]func(){
		"Panic":  func() { panic("broken") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &flight{}
				var lost []int
				var value any
				c := coalescer(Config[int]{
					MaxItems: 2,
					Flush: func(batch []int) {
						if batch[0] == 1 {
							breakOff()
						}
						f.flush(batch)
					},
					Panicked: func(batch []int, v any) { lost, value = batch, v },
				})
				busy(t, c)
				add(t, c, 1, 2, 3)
				finish(t, c)
				wantBatches(t, f, []int{0}, []int{3})
				if !slices.Equal(lost, []int{1, 2}) || (value == nil) != (name == "Goexit") {
					t.Errorf("Panicked got %v, %v", lost, value)
				}
			})
		})
	}
}

// Callers that wait for their answers and come back at once share the flushes. Half of them to a batch is the least:
// two groups that take turns.
func TestWaitingCallersFillTheBatches(t *testing.T) {
	const callers, rounds = 64, 50
	synctest.Test(t, func(t *testing.T) {
		var batches atomic.Int64
		c := coalescer(Config[chan struct{}]{Flush: func(batch []chan struct{}) {
			batches.Add(1)
			time.Sleep(time.Millisecond)
			for _, done := range batch {
				close(done)
			}
		}})
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for range rounds {
					done := make(chan struct{})
					if err := c.Add(done); err != nil {
						t.Error(err)
						return
					}
					<-done
				}
			})
		}
		group.Wait()
		size := callers * rounds / float64(batches.Load())
		t.Logf("%.1f items per batch", size)
		if size < callers/2-2 {
			t.Errorf("%.1f items per batch of %d callers", size, callers)
		}
	})
}

func TestEveryItemIsFlushedOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config[int]{
			Size:     itself,
			MaxItems: rapid.IntRange(0, 5).Draw(rt, "max items"),
			MaxBytes: rapid.IntRange(0, 20).Draw(rt, "max bytes"),
		}
		counts := func(int) int { return 1 }
		if rapid.Bool().Draw(rt, "items count differently") {
			counts = func(item int) int { return item % 4 }
			cfg.Count = counts
		}
		items := rapid.SliceOf(rapid.IntRange(0, 30)).Draw(rt, "items")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 1500), len(items), len(items)).Draw(rt, "pauses in ms")
		f := fly(t, cfg, func(t *testing.T, c *Coalescer[int]) {
			for i, item := range items {
				add(t, c, item)
				time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
			}
		})
		if got := slices.Concat(f.batches...); !slices.Equal(got, items) {
			rt.Fatalf("flushed %v, want %v", got, items)
		}
		for _, batch := range f.batches {
			sum, count := 0, 0
			for _, item := range batch {
				sum, count = sum+item, count+counts(item)
			}
			if len(batch) == 0 || cfg.MaxItems > 0 && count > cfg.MaxItems && len(batch) > 1 ||
				cfg.MaxBytes > 0 && sum > cfg.MaxBytes && len(batch) > 1 {
				rt.Fatalf("batch %v exceeds %d items or %d bytes", batch, cfg.MaxItems, cfg.MaxBytes)
			}
		}
	})
}

func TestManyGoroutinesAddAndClose(t *testing.T) {
	var flushed, accepted atomic.Int64
	c := coalescer(Config[int]{Flushers: 3, MaxItems: 7, Flush: func(batch []int) { flushed.Add(int64(len(batch))) }})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 2000 {
				if c.Add(i) == nil {
					accepted.Add(1)
				}
			}
		})
	}
	group.Go(func() {
		for accepted.Load() < 4000 {
			runtime.Gosched()
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	group.Wait()
	if flushed.Load() != accepted.Load() {
		t.Errorf("%d accepted, %d flushed", accepted.Load(), flushed.Load())
	}
}

func every(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func BenchmarkAddFrom64Goroutines(b *testing.B) {
	c := coalescer(Config[*int]{Flush: func([]*int) {}, MaxItems: 500, Size: func(*int) int { return 100 }})
	item := new(int)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := c.Add(item); err != nil {
				b.Error(err)
			}
		}
	})
}

func TestPagesAreBounded(t *testing.T) {
	size := func(n *int) int { return *n }
	for _, c := range []struct {
		items, want string
	}{
		{"[]", "[]"},
		{"[1 1 1 1]", "[[1 1 1] [1]]"},
		{"[4 2 5 1]", "[[4 2] [5 1]]"},
		{"[9 1 9]", "[[9] [1] [9]]"},
	} {
		var items []int
		for _, n := range strings.Fields(strings.Trim(c.items, "[]")) {
			items = append(items, int(n[0]-'0'))
		}
		if got := fmt.Sprint(Pages(items, 3, 6, size)); got != c.want {
			t.Errorf("%s: %s, want %s", c.items, got, c.want)
		}
	}
}

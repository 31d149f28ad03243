package timer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/delaytask/delaytask/internal/row"
)

const farFuture = row.Time(1) << 62

// fill adds n entries with random due times and ids that look like real ones: a time, a node, a sequence.
func fill(h *Heap, n int) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range int64(n) {
		h.Set(Entry{ID: (i/7)<<22 | 5<<12 | i, Due: 1 + row.Time(random.Int64N(1<<40))})
	}
}

func TestManyEntriesLeaveInOrder(t *testing.T) {
	h := new(Heap)
	fill(h, 50_000)
	for _, due := range []row.Time{1 << 39, farFuture, 0} {
		moved := Entry{ID: 5<<12 | 3, Version: int64(due), Due: due}
		h.Set(moved)
		checkHeap(t, h)
		if got, ok := h.Get(moved.ID); !ok || got != moved || h.Len() != 50_000 {
			t.Fatalf("got %v, %v of %d entries; want %v", got, ok, h.Len(), moved)
		}
	}
	var last Entry
	for n := 50_000; n > 0; n-- {
		e, ok := h.PopBefore(farFuture)
		if !ok || e.before(&last) {
			t.Fatalf("%v, %v after %v with %d left", e, ok, last, n)
		}
		last = e
	}
}

func TestTrimActsOnlyOnceTheHeapHasOutgrownTheBound(t *testing.T) {
	h := new(Heap)
	dropped, passes, most := 0, 0, 0
	for i := range 10_000 {
		h.Set(Entry{ID: int64(i), Due: row.Time(10_000 - i)})
		before := dropped
		h.Trim(800, func(Entry) { dropped++ })
		if dropped > before {
			passes++
		}
		most = max(most, h.Len())
	}
	if most != 900 {
		t.Errorf("up to %d entries after a trim to 800, want the bound and an eighth", most)
	}
	checkHeap(t, h)
	for due := row.Time(1); due <= 800; due++ {
		if e, ok := h.PopBefore(farFuture); !ok || e.Due != due {
			t.Fatalf("popped %v, %v; want the one due at %d", e, ok, due)
		}
	}
	if passes > 9200/100 {
		t.Errorf("%d passes over all entries", passes)
	}
	if dropped+h.Len()+800 != 10_000 {
		t.Errorf("%d dropped, %d left", dropped, h.Len())
	}
}

// held returns how many bytes the heap holds on to.
func held(h *Heap) int {
	pages := len(h.entries.pages) * int(unsafe.Sizeof(page{}))
	return int(unsafe.Sizeof(*h)) + cap(h.entries.pages)*8 + pages + cap(h.places.slots)*4
}

func TestAMillionEntriesFitIn42MB(t *testing.T) {
	h, before := new(Heap), liveBytes()
	fill(h, 1_000_000)
	if took := liveBytes() - before; took > 42e6 {
		t.Errorf("%d bytes", took)
	}
	runtime.KeepAlive(h)
}

func TestEntriesHoldNoPointers(t *testing.T) {
	for field := range reflect.TypeFor[Entry]().Fields() {
		switch field.Type.Kind() {
		case reflect.Int64, reflect.Uint32, reflect.Int8, reflect.Uint8, reflect.Bool:
		default:
			t.Errorf("%s is a %v, and the collector does not look into the heap", field.Name, field.Type)
		}
	}
}

func TestAClearedHeapIsEmptyAndMayBeFilledAgain(t *testing.T) {
	h := new(Heap)
	h.Clear()
	for range 2 {
		fill(h, 50_000)
		h.Clear()
		checkHeap(t, h)
		if b := held(h); h.Len() != 0 || b != int(unsafe.Sizeof(*h)) {
			t.Fatalf("%d entries, %d bytes held", h.Len(), b)
		}
	}
}

func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMemoryIsGivenBack(t *testing.T) {
	for name, shrink := range map[string]func(h *Heap){
		"ByPops": func(h *Heap) {
			for h.Len() > 1000 {
				h.PopBefore(farFuture)
			}
		},
		"ByRemoves": func(h *Heap) {
			for h.Len() > 1000 {
				h.Remove(h.entries.at(h.Len() / 2).ID)
			}
		},
		"ByTrim": func(h *Heap) { h.Trim(1000, func(Entry) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			h := new(Heap)
			fill(h, 100_000)
			shrink(h)
			checkHeap(t, h)
			if b := held(h); b > 128<<10 {
				t.Errorf("%d entries hold %d bytes", h.Len(), b)
			}
		})
	}
}

func atSizes(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range []int{1000, 250_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, n) })
	}
}

// A timer's normal life: the earliest leaves, a later one comes.
func BenchmarkPopAndSet(b *testing.B) {
	atSizes(b, func(b *testing.B, n int) {
		var h Heap
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
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
		b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
	})
}

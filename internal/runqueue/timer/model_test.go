package timer

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

// model is the heap as one would write it without thinking of speed.
type model map[int64]Entry

func (m model) sorted() []Entry {
	var all []Entry
	for _, e := range m {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	return all
}

func drawEntry(t *rapid.T) Entry {
	return Entry{
		ID:       rapid.Int64Range(1, 60).Draw(t, "id"),
		Due:      row.Time(rapid.Int64Range(1, 30).Draw(t, "due")),
		Version:  rapid.Int64Range(0, 3).Draw(t, "version"),
		Tag:      rapid.Uint32().Draw(t, "tag"),
		Priority: rapid.Int8().Draw(t, "priority"),
		Crashes:  rapid.Uint8().Draw(t, "crashes"),
		Backlog:  rapid.Bool().Draw(t, "backlog"),
	}
}

func TestHeapActsLikeASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap
		m := model{}
		t.Repeat(map[string]func(*rapid.T){
			"Set": func(t *rapid.T) {
				e := drawEntry(t)
				h.Set(e)
				m[e.ID] = e
			},
			"Get": func(t *rapid.T) {
				id := drawEntry(t).ID
				got, ok := h.Get(id)
				if want, known := m[id]; got != want || ok != known {
					t.Fatalf("Get(%d) = %v, %v; want %v, %v", id, got, ok, want, known)
				}
			},
			"Remove": func(t *rapid.T) {
				id := drawEntry(t).ID
				got, ok := h.Remove(id)
				if want, known := m[id]; got != want || ok != known {
					t.Fatalf("Remove(%d) = %v, %v; want %v, %v", id, got, ok, want, known)
				}
				delete(m, id)
			},
			"PopBefore": func(t *rapid.T) {
				at := drawEntry(t).Due
				got, ok := h.PopBefore(at)
				var want Entry
				if all := m.sorted(); len(all) > 0 && all[0].Due <= at {
					want = all[0]
				}
				if got != want || ok != (want.ID != 0) {
					t.Fatalf("PopBefore(%d) = %v, %v; want %v", at, got, ok, want)
				}
				delete(m, want.ID)
			},
			"Trim": func(t *rapid.T) {
				n := rapid.IntRange(0, 60).Draw(t, "n")
				want := m.sorted()
				if len(want) <= n+n/8 {
					n = len(want)
				}
				dropped := model{}
				h.Trim(n, func(e Entry) { dropped[e.ID] = e })
				if got := dropped.sorted(); !slices.Equal(got, want[n:]) {
					t.Fatalf("Trim(%d) dropped %v, want %v", n, got, want[n:])
				}
				for id := range dropped {
					delete(m, id)
				}
			},
			"": func(t *rapid.T) {
				checkHeap(t, &h)
				all := m.sorted()
				first, ok := h.First()
				if h.Len() != len(all) || ok != (len(all) > 0) || ok && first != all[0] {
					t.Fatalf("Len %d, First %v, %v; want %v", h.Len(), first, ok, all)
				}
			},
		})
	})
}

// checkHeap checks what must hold inside: no entry before its parent, and each found at its place.
func checkHeap(t rapid.TB, h *Heap) {
	t.Helper()
	for i := range h.Len() {
		e := h.entries.at(i)
		if p := h.entries.at((i - 1) / arity); i > 0 && e.before(p) {
			t.Fatalf("%v at place %d comes before its parent %v", *e, i, *p)
		}
		if _, place, ok := h.places.find(&h.entries, e.ID); !ok || place != i {
			t.Fatalf("%v stands at place %d, the index says %d, %v", *e, i, place, ok)
		}
	}
	if h.places.used != h.Len() {
		t.Fatalf("the index holds %d places of %d entries", h.places.used, h.Len())
	}
}

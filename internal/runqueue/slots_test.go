package runqueue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

// claimedRow is a row of the tag that was claimed and whose time has come.
func claimedRow(h *Queue, id int64, tag string, priority int8) *Item {
	it := &Item{line: h.lines.line(tag)}
	it.ID, it.Priority = id, priority
	return it
}

func never(*Item) bool { return false }

// TestGateKeepsAllSlotsBusyAndNoMore plays random moves: never do more rows run than there are slots, and none waits beside a free one.
func TestGateKeepsAllSlotsBusyAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		limit := map[string]int{"a": rapid.IntRange(1, 5).Draw(t, "limit of a"), "b": rapid.IntRange(1, 5).Draw(t, "limit of b")}
		h := New(workers, 5, Limits{Timers: 10, Backlog: 10})
		for tag, n := range limit {
			h.Serve(tag, true, n)
		}
		var rows []*Item // that run or wait
		drop := func(it *Item) { rows = slices.DeleteFunc(rows, func(other *Item) bool { return it == other }) }
		id := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				id++
				tag := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tag")
				it := claimedRow(h, id, tag, int8(rapid.IntRange(0, 2).Draw(t, "priority")))
				rows = append(rows, it)
				if h.Enter(it) != it.running {
					t.Fatalf("entered, and runs: %v", it.running)
				}
			},
			"leave": func(t *rapid.T) {
				admitted, waiting := split(rows, func(it *Item) bool { return it.running })
				if len(admitted) == 0 {
					t.Skip("none runs")
				}
				it := rapid.SampledFrom(admitted).Draw(t, "row")
				admitted = h.Leave(it)
				drop(it)
				for _, next := range admitted {
					if !slices.Contains(waiting, next) {
						t.Fatalf("row %d goes on, which did not wait", next.ID)
					}
					waiting = slices.DeleteFunc(waiting, func(other *Item) bool { return other == next })
					for _, other := range waiting {
						if other.line == next.line && byPriority(other, next) {
							t.Fatalf("row %d goes on before row %d", next.ID, other.ID)
						}
					}
				}
				if h.Leave(it) != nil {
					t.Fatal("a row left twice")
				}
			},
			"close": func(*rapid.T) { h.Serve("a", false, 0) },
			"expel": func(*rapid.T) {
				for _, it := range h.Expel(time.Now(), never) {
					drop(it)
				}
			},
			"": func(t *rapid.T) {
				running := map[string]int{}
				admitted, waiting := split(rows, func(it *Item) bool { return it.running })
				for _, it := range admitted {
					running[it.Tag()]++
				}
				if len(admitted) > workers || running["a"] > limit["a"] || running["b"] > limit["b"] {
					t.Fatalf("%v run", running)
				}
				for _, it := range waiting {
					mine := running[it.Tag()]
					if h.lines.open == 2 && len(admitted) < workers && mine < min(limit[it.Tag()], h.lines.fair(len(admitted)-mine)) {
						t.Fatalf("row %d of %s waits while %v of %d run", it.ID, it.Tag(), running, workers)
					}
				}
			},
		})
	})
}

func TestOneThatLeavesMayMakeRoomForTwo(t *testing.T) {
	h := handsFor(3, 2, "a", "b")
	h.Serve("b", true, 1)
	var rows []*Item
	for id, tag := range []string{"a", "b", "a", "b"} { // the second of a would leave nothing to others
		it := claimedRow(h, int64(id), tag, 0)
		if h.Enter(it) != (id < 2) {
			t.Fatalf("row %d runs: %v", id, it.running)
		}
		rows = append(rows, it)
	}
	if next := h.Leave(rows[1]); len(next) != 2 {
		t.Errorf("%d rows go on, want those of both tags", len(next))
	}
}

// A row that waits in the gate has left its line: growing old there does not concern it any more.
func TestRowInTheGateDoesNotAge(t *testing.T) {
	h := handsFor(1, 1, "a")
	h.withSurplus(10)
	h.AddDue(sightings("a", 1, 3), false, 0)
	picked := h.pickAny(2, 0)
	first, second := picked[0], picked[1]
	h.Enter(first)
	h.Enter(second)
	h.lines.age(ms(5000), 10)
	if next := h.Leave(first); !slices.Equal(next, []*Item{second}) {
		t.Errorf("%+v goes on", next)
	}
	if got := idsIn(h.pickAny(10, 0)); !slices.Equal(got, []int64{3}) {
		t.Errorf("then picked %v", got)
	}
}

// withSurplus lets rows be claimed beyond the slots for the next two seconds, however quickly tasks have come to an end.
func (h *Queue) withSurplus(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines.byTag {
		line.flow = flow{since: time.Now().Add(2 * time.Second), surplus: n}
	}
	h.lines.flow = flow{since: time.Now().Add(2 * time.Second), surplus: n}
}

// A slot is given back in two steps: the place for claims, and then the slot to run in. The claimer may look between the two.
func TestASlotThatIsLeftWakesTheClaimer(t *testing.T) {
	h := handsFor(1, 1, "a", "b")
	now := row.At(time.Now())
	h.AddDue([]row.Due{{ID: 1, Tag: "a", Due: now}}, false, now)
	it := h.Pick(1, now, false)[0]
	if !h.Enter(it) {
		t.Fatal("not admitted")
	}
	h.AddDue([]row.Due{{ID: 2, Tag: "b", Due: now}}, false, now)
	if got := h.Pick(1, now, false); len(got) != 0 {
		t.Fatal("picked beside the only slot")
	}
	for len(h.ClaimWake) > 0 {
		<-h.ClaimWake
	}

	h.Yield(it, Slot) // settler.add
	<-h.ClaimWake
	got := h.Pick(1, now, false) // claimer.loop, woken by that
	h.Leave(it)                  // runner.work
	select {
	case <-h.ClaimWake:
		got = append(got, h.Pick(1, now, false)...)
	default:
	}
	if len(got) != 1 {
		t.Errorf("the only slot is free, and task 2 waits for a signal that nobody gives")
	}
}

// split parts a list in two, in order.
func split(all []*Item, first func(*Item) bool) (yes, no []*Item) {
	for _, it := range all {
		if first(it) {
			yes = append(yes, it)
		} else {
			no = append(no, it)
		}
	}
	return yes, no
}

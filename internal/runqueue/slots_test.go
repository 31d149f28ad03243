package runqueue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

// claimedRow is a row of the tag that was claimed and whose time has come.
func claimedRow(q *Queue, id int64, tag string, priority int8) *Item {
	it := &Item{tag: q.tags.get(tag)}
	it.ID, it.Priority = id, priority
	return it
}

func never(*Item) bool { return false }

// TestSlotsAreAllBusyAndNoMore plays random moves: never do more rows run than there are slots, and none waits beside
// a free one.
func TestSlotsAreAllBusyAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		concurrency := rapid.IntRange(1, 5).Draw(t, "concurrency")
		limits := rapid.IntRange(1, 5)
		limit := map[string]int{"a": limits.Draw(t, "limit of a"), "b": limits.Draw(t, "limit of b")}
		q := New(concurrency, 5, Limits{Timers: 10, Backlog: 10})
		for tag, n := range limit {
			q.Serve(tag, true, n)
		}
		var rows []*Item // that run or wait
		drop := func(it *Item) { rows = slices.DeleteFunc(rows, func(other *Item) bool { return it == other }) }
		id := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				id++
				tag := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tag")
				it := claimedRow(q, id, tag, int8(rapid.IntRange(0, 2).Draw(t, "priority")))
				rows = append(rows, it)
				if q.Slots.Enter(it) != it.running {
					t.Fatalf("entered, and runs: %v", it.running)
				}
			},
			"leave": func(t *rapid.T) {
				admitted, waiting := split(rows, func(it *Item) bool { return it.running })
				if len(admitted) == 0 {
					t.Skip("none runs")
				}
				it := rapid.SampledFrom(admitted).Draw(t, "row")
				admitted = q.Slots.Leave(it)
				drop(it)
				for _, next := range admitted {
					if !slices.Contains(waiting, next) {
						t.Fatalf("row %d goes on, which did not wait", next.ID)
					}
					waiting = slices.DeleteFunc(waiting, func(other *Item) bool { return other == next })
					for _, other := range waiting {
						if other.tag == next.tag && byPriority(other, next) {
							t.Fatalf("row %d goes on before row %d", next.ID, other.ID)
						}
					}
				}
				if q.Slots.Leave(it) != nil {
					t.Fatal("a row left twice")
				}
			},
			"close": func(*rapid.T) { q.Serve("a", false, 0) },
			"expel": func(*rapid.T) {
				for _, it := range q.Slots.Expel(time.Now(), never) {
					drop(it)
				}
			},
			"": func(t *rapid.T) {
				running := map[string]int{}
				admitted, waiting := split(rows, func(it *Item) bool { return it.running })
				for _, it := range admitted {
					running[it.Tag()]++
				}
				if len(admitted) > concurrency || running["a"] > limit["a"] || running["b"] > limit["b"] {
					t.Fatalf("%v run", running)
				}
				for _, it := range waiting {
					mine := running[it.Tag()]
					most := min(limit[it.Tag()], q.claims.fair(len(admitted)-mine))
					if q.claims.open == 2 && len(admitted) < concurrency && mine < most {
						t.Fatalf("row %d of %s waits while %v of %d run", it.ID, it.Tag(), running, concurrency)
					}
				}
			},
		})
	})
}

func TestOneThatLeavesMayMakeRoomForTwo(t *testing.T) {
	q := queueFor(3, 2, "a", "b")
	q.Serve("b", true, 1)
	var rows []*Item
	for id, tag := range []string{"a", "b", "a", "b"} { // the second of a would leave nothing to others
		it := claimedRow(q, int64(id), tag, 0)
		if q.Slots.Enter(it) != (id < 2) {
			t.Fatalf("row %d runs: %v", id, it.running)
		}
		rows = append(rows, it)
	}
	if next := q.Slots.Leave(rows[1]); len(next) != 2 {
		t.Errorf("%d rows go on, want one of each tag", len(next))
	}
}

// A row that waits for a slot has left its ready queue: growing old there does not concern it any more.
func TestRowThatWaitsForASlotDoesNotAge(t *testing.T) {
	q := queueFor(1, 1, "a")
	q.withPrefetch(10)
	q.AddDue(sightings("a", 1, 3), false, 0)
	picked := q.pickAny(2, 0)
	first, second := picked[0], picked[1]
	q.Slots.Enter(first)
	q.Slots.Enter(second)
	q.ready.age(ms(5000), 10)
	if next := q.Slots.Leave(first); !slices.Equal(next, []*Item{second}) {
		t.Errorf("%+v goes on", next)
	}
	if got := idsIn(q.pickAny(10, 0)); !slices.Equal(got, []int64{3}) {
		t.Errorf("then picked %v", got)
	}
}

// withPrefetch lets rows be claimed beyond the slots for the next two seconds, however quickly tasks have come to an
// end.
func (q *Queue) withPrefetch(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, tag := range q.tags.byName {
		tag.rate = rate{since: time.Now().Add(2 * time.Second), prefetch: n}
	}
	q.claims.rate = rate{since: time.Now().Add(2 * time.Second), prefetch: n}
}

// A slot is given back in two steps: the place for claims, and then the slot to run in. The claimer may look between
// the two.
func TestASlotThatIsLeftWakesTheClaimer(t *testing.T) {
	q := queueFor(1, 1, "a", "b")
	now := row.At(time.Now())
	q.AddDue([]row.Due{{ID: 1, Tag: "a", Due: now}}, false, now)
	it := q.Pick(1, now, false)[0]
	if !q.Slots.Enter(it) {
		t.Fatal("not admitted")
	}
	q.AddDue([]row.Due{{ID: 2, Tag: "b", Due: now}}, false, now)
	if got := q.Pick(1, now, false); len(got) != 0 {
		t.Fatal("picked beside the only slot")
	}
	for len(q.ClaimWake) > 0 {
		<-q.ClaimWake
	}

	q.Yield(it, Slot) // settler.add
	<-q.ClaimWake
	got := q.Pick(1, now, false) // claimer.loop, woken by that
	q.Slots.Leave(it)            // runner.work
	select {
	case <-q.ClaimWake:
		got = append(got, q.Pick(1, now, false)...)
	default:
	}
	if len(got) != 1 {
		t.Errorf("the only slot is free, and task 2 waits for a signal that never comes")
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

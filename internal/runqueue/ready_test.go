package runqueue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

// handsFor returns hands with workers slots in which every tag may use limit.
func handsFor(workers, limit int, tags ...string) *Queue {
	h := New(workers, 5, Limits{Timers: 1000, Backlog: 1000})
	for _, tag := range tags {
		h.Serve(tag, true, limit)
	}
	return h
}

// pickAny picks from both lines, as the claimer does: what is due now first.
func (h *Queue) pickAny(most int, now row.Time) []*Item {
	picked := h.Pick(most, now, false)
	return append(picked, h.Pick(most-len(picked), now, true)...)
}

// sightings makes n rows of a tag, ids from first on, due one microsecond after the other.
func sightings(tag string, first int64, n int) []row.Due {
	ds := make([]row.Due, n)
	for i := range ds {
		ds[i] = row.Due{ID: first + int64(i), Tag: tag, Due: row.Time(first + int64(i))}
	}
	return ds
}

func idsIn(items []*Item) (ids []int64) {
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

func TestWhatIsDueNowGetsHalfOfTheSlotsBesideABacklog(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8, 64} {
		h := handsFor(workers, workers, "old", "new")
		h.AddDue(sightings("old", 1, 500), true, 0)
		h.AddDue(sightings("new", 1001, 500), false, 0)
		fresh, old := 0, 0
		for range 100 {
			for _, it := range h.pickAny(MaxClaim, 0) {
				if it.ID > 1000 {
					fresh++
				} else {
					old++
				}
				h.Release(it, Ended)
			}
			if fresh+old > 300 {
				break
			}
		}
		if fresh < old-1 || old == 0 {
			t.Errorf("%d workers: %d new rows and %d of the backlog", workers, fresh, old)
		}
	}
}

func TestEmptyLineLeavesItsSlotsToTheOther(t *testing.T) {
	for backlog, want := range map[bool]int{false: 64, true: 56} { // an eighth is kept for what falls due meanwhile
		h := handsFor(64, 64, "a")
		h.AddDue(sightings("a", 1, 100), backlog, 0)
		if got := len(h.pickAny(MaxClaim, 0)); got != want {
			t.Errorf("backlog %t: %d slots are used, want %d", backlog, got, want)
		}
	}
}

func TestBacklogGoesRoundTheTags(t *testing.T) {
	h := handsFor(9, 9, "a", "b", "c")
	h.AddDue(sightings("a", 1, 100), true, 0)
	h.AddDue(sightings("b", 201, 100), true, 0)
	h.AddDue(sightings("c", 401, 100), true, 0)
	count := map[string]int{}
	for range 10 {
		for _, it := range h.pickAny(MaxClaim, 0) {
			count[it.line.tag]++
			h.Release(it, Ended)
		}
	}
	for _, tag := range []string{"a", "b", "c"} { // one of the nine slots is kept for a tag that comes
		if n := count[tag]; n < 26 || n > 27 {
			t.Errorf("picked %v, want a third of 80 of each", count)
		}
	}
}

func TestTagTakesAtMostItsConcurrency(t *testing.T) {
	h := handsFor(10, 3, "a", "b")
	h.AddDue(sightings("a", 1, 50), false, 0)
	h.AddDue(sightings("a", 101, 50), true, 0)
	h.AddDue(sightings("b", 201, 50), true, 0)
	first := h.pickAny(MaxClaim, 0)
	count := map[string]int{}
	for _, it := range first {
		count[it.line.tag]++
	}
	if count["a"] != 3 || count["b"] != 3 || len(h.pickAny(MaxClaim, 0)) != 0 {
		t.Errorf("picked %v, want 3 of each", count)
	}
	h.Release(first[0], Ended)
	if again := h.pickAny(MaxClaim, 0); len(again) != 1 || again[0].line != first[0].line {
		t.Errorf("a free slot of the tag gave %v", idsIn(again))
	}
}

func TestRowWithoutADueTimeWaitsInNoLine(t *testing.T) {
	h := handsFor(1, 1, "a")
	if taken := h.AddDue([]row.Due{{ID: 1, Tag: "a"}}, false, ms(0)); taken != 0 || len(h.pickAny(1, 0)) != 0 {
		t.Errorf("%d rows were taken that nobody knows to be due", taken)
	}
}

func TestPriorityThenDueTimeThenID(t *testing.T) {
	h := handsFor(1, 1, "a", "b")
	h.AddDue([]row.Due{
		{ID: 1, Tag: "a", Due: 50}, {ID: 2, Tag: "b", Due: 40}, {ID: 3, Tag: "a", Due: 90, Priority: 100},
		{ID: 4, Tag: "b", Due: 10, Priority: -100}, {ID: 6, Tag: "a", Due: 60}, {ID: 5, Tag: "b", Due: 60},
	}, false, 0)
	var order []int64
	for got := h.pickAny(1, 0); len(got) > 0; got = h.pickAny(1, 0) {
		order = append(order, got[0].ID)
		h.Release(got[0], Ended)
	}
	if !slices.Equal(order, []int64{3, 2, 1, 5, 6, 4}) {
		t.Errorf("picked %v", order)
	}
}

func (h *Queue) waits(id int64) bool { return h.lines.get(id) != nil }

func TestClosedTagForgetsWhatWaitsAndKeepsWhatIsHeld(t *testing.T) {
	h := handsFor(1, 1, "a", "b")
	h.AddDue(sightings("a", 1, 3), false, 0)
	held := h.pickAny(1, 0)
	h.AddDue(sightings("a", 101, 3), true, 0)
	h.AddDue([]row.Due{{ID: 200, Tag: "a", Due: 1, CrashCount: 3}}, false, 0)
	h.Serve("a", false, 0)
	if !h.Owns(held[0].ID) || h.waits(2) || h.waits(101) || h.waits(200) {
		t.Error("want what is held, and nothing that waits")
	}
	h.Release(held[0], Unclaimed)
	if h.waits(held[0].ID) || len(h.pickAny(1, 0)) != 0 {
		t.Error("a row of a closed tag waits again")
	}
	h.Serve("a", true, 1)
	h.AddDue(sightings("a", 1, 1), false, 0)
	if got := h.pickAny(1, 0); len(got) != 1 {
		t.Error("the tag is open again and nothing runs")
	}
}

// TestOneHandPerRow plays random moves against a plain model of where each row is.
func TestOneHandPerRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		h := New(workers, 5, Limits{Timers: 10, Backlog: 10})
		h.Serve("a", true, limit)
		h.Serve("b", true, limit)
		h.withSurplus(0)
		held := map[int64]*Item{}
		slots, survived := 0, 0
		draw := func() row.Due {
			return row.Due{
				ID: rapid.Int64Range(1, 20).Draw(t, "id"), Version: rapid.Int64Range(0, 3).Draw(t, "version"),
				Tag: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tag"), Due: row.Time(rapid.Int64Range(1, 5).Draw(t, "due")),
				CrashCount: rapid.IntRange(0, 3).Draw(t, "crashes"),
			}
		}
		any := func() *Item {
			if len(held) == 0 {
				t.Skip("nothing is held")
			}
			var ids []int64
			for id := range held {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return held[rapid.SampledFrom(ids).Draw(t, "held")]
		}
		free := func(it *Item) {
			if it.slot {
				slots--
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"arm": func(*rapid.T) { h.Arm(draw(), false) },
			"due": func(*rapid.T) { h.AddDue([]row.Due{draw()}, rapid.Bool().Draw(t, "backlog"), 1) },
			"fire": func(*rapid.T) {
				lead := Window{Near: time.Microsecond, First: 3 * time.Microsecond, Last: 4 * time.Microsecond}
				now := row.Time(rapid.Int64Range(0, 5).Draw(t, "now"))
				h.Fire(now, lead, func(e timer.Entry, _ string) bool { return e.Version%2 == 0 })
			},
			"pick": func(t *rapid.T) {
				var suspects []*Item
				for _, it := range h.pickAny(rapid.IntRange(1, 5).Draw(t, "max"), 0) {
					if held[it.ID] != nil {
						t.Fatalf("row %d was picked while it is held", it.ID)
					}
					held[it.ID] = it
					slots++
				}
				for _, it := range held {
					if it.suspect() {
						suspects = append(suspects, it)
					}
				}
				if len(suspects) > 1 && (slices.ContainsFunc(suspects, h.lines.suspects.isLone) ||
					len(suspects) > min(1+survived, max(workers/suspectsKeep, 1))) {
					t.Fatalf("%d suspects are held: %v", len(suspects), idsIn(suspects))
				}
			},
			"freeSlot": func(*rapid.T) { it := any(); free(it); h.Yield(it, Slot) },
			"letGo":    func(*rapid.T) { it := any(); free(it); h.Release(it, Ended); delete(held, it.ID) },
			"settled": func(*rapid.T) {
				it := any()
				free(it)
				h.Release(it, Proven)
				delete(held, it.ID)
				if it.suspect() {
					survived++
				}
			},
			"putBack": func(*rapid.T) { it := any(); free(it); h.Release(it, Unclaimed); delete(held, it.ID) },
			"close":   func(*rapid.T) { h.Serve("a", false, 0) },
			"open":    func(*rapid.T) { h.Serve("a", true, limit) },
			"rest":    func(*rapid.T) { h.lines.measure(time.Now()) },
			"want":    func(*rapid.T) { h.Want([]string{"a"}, 1); h.Want([]string{"a"}, -1) },
			"": func(t *rapid.T) {
				if h.lines.busy != slots || slots > workers {
					t.Fatalf("%d of %d places are counted as taken, %d are", h.lines.busy, workers, slots)
				}
				busy, ahead := map[string]int{}, map[string]int{}
				for id, it := range held {
					if it.ahead {
						ahead[it.line.tag]++
					}
					if it.slot {
						busy[it.line.tag]++
					}
					_, armed := h.heap.Get(id)
					if !h.Owns(id) || armed || h.lines.get(id) != nil {
						t.Fatalf("row %d is held and in another place too", id)
					}
				}
				for tag, n := range busy {
					if n > limit {
						t.Fatalf("%d slots of %s, its limit is %d", n, tag, limit)
					}
				}
				for _, line := range h.lines.byTag {
					if n := ahead[line.tag]; n != line.ahead || n > limit-kept(limit) {
						t.Fatalf("%d slots of %s are held ahead of time, %d are counted, the limit is %d", n, line.tag, line.ahead, limit)
					}
				}
				if n := ahead["a"] + ahead["b"]; n != h.lines.ahead || n > workers-kept(workers) {
					t.Fatalf("%d slots are held ahead of time, %d are counted, there are %d", n, h.lines.ahead, workers)
				}
				for id := range h.lines.waiting {
					if _, armed := h.heap.Get(id); armed {
						t.Fatalf("row %d waits in the lines and in the heap", id)
					}
				}
				checkTagLines(t, h)
				if h.heap.Len() > 11 {
					t.Fatalf("%d timers, the cap is 10 and an eighth", h.heap.Len())
				}
			},
		})
	})
}

// TestWhatATagRunsInASecondIsNotForgotten has a tag that runs 200 tasks a second, and one that runs none.
func TestWhatATagRunsInASecondIsNotForgotten(t *testing.T) {
	h := handsFor(2, 2, "a", "b")
	h.AddDue(sightings("a", 1, 300), false, 0)
	h.AddDue(sightings("b", 301, 600), false, 0)
	h.lines.line("a").flow.expected = 200 * int(surplusSpan) / int(time.Second)
	if !h.lines.age(ms(5000), 10) {
		t.Error("nothing was forgotten")
	}
	if quick, slow := len(h.lines.line("a").backlog), len(h.lines.line("b").backlog); quick != 200 || slow != 10 {
		t.Errorf("%d rows of the quick tag are kept and %d of the other, want 200 and 10", quick, slow)
	}
}

func TestOverdueRowsAreKeptInMemoryUpToABound(t *testing.T) {
	h := handsFor(1, 1, "a")
	h.limits.Backlog = 10
	h.AddDue(sightings("a", 1, 100), false, 0)
	running := h.pickAny(1, 0)
	if got := h.pickAny(1, ms(5000)); len(got) != 0 || len(h.lines.waiting) != 10 {
		t.Errorf("%d rows wait in memory beside %d that runs, want the bound of 10", len(h.lines.waiting), len(running))
	}
}

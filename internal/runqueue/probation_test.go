package runqueue

import (
	"slices"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

// suspectsOf puts rows into the lines that have lost so many executors each, with ids from 1 on.
func suspectsOf(workers int, crashes ...int) *Queue {
	h := handsFor(workers, workers, "a")
	for i, n := range crashes {
		h.AddDue([]row.Due{{ID: int64(i + 1), Tag: "a", Due: 1, CrashCount: n}}, false, 0)
	}
	return h
}

func repeat(crashes, times int) []int { return slices.Repeat([]int{crashes}, times) }

func TestSuspectThatNoCrashCountsAgainstLetsTheNextOneRun(t *testing.T) {
	for name, step := range map[string]func(h *Queue, it *Item){
		"it was not claimed":                  func(h *Queue, it *Item) { h.Yield(it, Slot|Turn) },
		"it goes back to its line":            func(h *Queue, it *Item) { h.Release(it, Unclaimed) },
		"it is in the hand of a token holder": func(h *Queue, it *Item) { h.Lend(it, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			h := handsFor(10, 10, "a")
			h.AddDue([]row.Due{{ID: 1, Tag: "a", Due: 1, CrashCount: 2}, {ID: 2, Tag: "a", Due: 1, CrashCount: 2}}, false, 0)
			first := h.pickAny(MaxClaim, 0)
			step(h, first[0])
			if got := h.pickAny(MaxClaim, 0); len(first) != 1 || !slices.Equal(idsIn(got), []int64{2}) {
				t.Errorf("picked %v, then %v", idsIn(first), idsIn(got))
			}
		})
	}
}

func TestSuspectsLeaveASingleWorkerToOthers(t *testing.T) {
	h := handsFor(1, 1, "a")
	for i := range 100 {
		h.AddDue([]row.Due{{ID: int64(i + 1), Tag: "a", Due: 1, CrashCount: 2}, {ID: int64(i + 1001), Tag: "a", Due: 1}}, false, 0)
	}
	others := 0
	for range 40 {
		for _, it := range h.pickAny(MaxClaim, 0) {
			if it.ID > 1000 {
				others++
			}
			h.Release(it, Ended)
		}
	}
	if others < 20 {
		t.Errorf("of 40 slots %d went to rows that never crashed", others)
	}
}

// wave takes what may run together and lets it come to its end.
func (h *Queue) wave() (ids []int64) {
	picked := h.pickAny(MaxClaim, 0)
	for _, it := range picked {
		h.Release(it, Proven)
	}
	return idsIn(picked)
}

func TestSuspectsThatSurviveLetMoreRunTogether(t *testing.T) {
	h := suspectsOf(20, repeat(2, 40)...)
	var waves []int
	for ids := h.wave(); len(ids) > 0; ids = h.wave() {
		waves = append(waves, len(ids))
	}
	if !slices.Equal(waves, []int{1, 2, 4, 8, 10, 10, 5}) {
		t.Errorf("waves of %v suspects, want twice as many each time, up to half of the workers", waves)
	}
}

func TestWhoHasLostThreeRunsAlone(t *testing.T) {
	h := suspectsOf(20, repeat(2, 7)...)
	h.wave()
	h.wave()
	beside := h.pickAny(MaxClaim, 0) // the other four
	h.AddDue([]row.Due{{ID: 8, Tag: "a", Due: 1, CrashCount: 3}, {ID: 9, Tag: "a", Due: 1, CrashCount: 4}}, false, 0)
	for _, it := range beside {
		if got := h.pickAny(MaxClaim, 0); len(got) != 0 {
			t.Fatalf("picked %v beside %v", idsIn(got), it.ID)
		}
		h.Release(it, Proven)
	}
	for _, want := range []int64{8, 9} {
		alone := h.pickAny(MaxClaim, 0)
		if got := h.pickAny(MaxClaim, 0); !slices.Equal(idsIn(alone), []int64{want}) || len(got) != 0 {
			t.Fatalf("picked %v and then %v, want %d alone", idsIn(alone), idsIn(got), want)
		}
		h.Release(alone[0], Proven)
	}
}

func TestWhoseNextLossIsTheLastRunsAlone(t *testing.T) {
	h := New(20, 3, Limits{Timers: 10, Backlog: 10})
	h.Serve("a", true, 20)
	for id := range int64(4) {
		h.AddDue([]row.Due{{ID: id + 1, Tag: "a", Due: 1, CrashCount: 2}}, false, 0)
	}
	for range 4 {
		if ids := h.wave(); len(ids) != 1 {
			t.Errorf("picked %v together", ids)
		}
	}
}

func TestSuspectsTakeTurns(t *testing.T) {
	h := suspectsOf(8, append(repeat(2, 30), repeat(3, 3)...)...)
	var lone []int
	for n := 0; ; n++ {
		ids := h.wave()
		if len(ids) == 0 {
			break
		}
		if len(ids) == 1 && ids[0] > 30 {
			lone = append(lone, n)
		}
	}
	if !slices.Equal(lone, []int{1, 3, 5}) {
		t.Errorf("those that run alone had the turns %v, want every other one", lone)
	}
}

package runqueue

import (
	"slices"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

// probationOf returns a queue with rows that have lost these numbers of executors, with ids from 1 on.
func probationOf(concurrency int, crashes ...int) *Queue {
	q := queueFor(concurrency, concurrency, "a")
	for i, n := range crashes {
		q.AddDue([]row.Due{{ID: int64(i + 1), Tag: "a", Due: 1, CrashCount: n}}, false, 0)
	}
	return q
}

func repeat(crashes, times int) []int { return slices.Repeat([]int{crashes}, times) }

func TestTaskThatNoCrashCountsAgainstLetsTheNextOneRun(t *testing.T) {
	for name, step := range map[string]func(q *Queue, it *Item){
		"it was not claimed":           func(q *Queue, it *Item) { q.Yield(it, Slot|Turn) },
		"it goes back to its tag":      func(q *Queue, it *Item) { q.Release(it, Unclaimed) },
		"the holder of a token has it": func(q *Queue, it *Item) { q.Lend(it, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			q := queueFor(10, 10, "a")
			q.AddDue([]row.Due{{ID: 1, Tag: "a", Due: 1, CrashCount: 2}, {ID: 2, Tag: "a", Due: 1, CrashCount: 2}},
				false, 0)
			first := q.pickAny(MaxClaim, 0)
			step(q, first[0])
			if got := q.pickAny(MaxClaim, 0); len(first) != 1 || !slices.Equal(idsIn(got), []int64{2}) {
				t.Errorf("picked %v, then %v", idsIn(first), idsIn(got))
			}
		})
	}
}

func TestProbationLeavesASingleSlotToOthers(t *testing.T) {
	q := queueFor(1, 1, "a")
	for i := range 100 {
		q.AddDue([]row.Due{{ID: int64(i + 1), Tag: "a", Due: 1, CrashCount: 2}}, false, 0)
		q.AddDue([]row.Due{{ID: int64(i + 1001), Tag: "a", Due: 1}}, false, 0)
	}
	others := 0
	for range 40 {
		for _, it := range q.pickAny(MaxClaim, 0) {
			if it.ID > 1000 {
				others++
			}
			q.Release(it, Ended)
		}
	}
	if others < 20 {
		t.Errorf("of 40 slots %d went to rows that never crashed", others)
	}
}

// wave takes what may run together and lets it come to its end.
func (q *Queue) wave() (ids []int64) {
	picked := q.pickAny(MaxClaim, 0)
	for _, it := range picked {
		q.Release(it, Proven)
	}
	return idsIn(picked)
}

func TestProvenTasksLetMoreRunTogether(t *testing.T) {
	q := probationOf(20, repeat(2, 40)...)
	var waves []int
	for ids := q.wave(); len(ids) > 0; ids = q.wave() {
		waves = append(waves, len(ids))
	}
	if !slices.Equal(waves, []int{1, 2, 4, 8, 10, 10, 5}) {
		t.Errorf("waves of %v on probation, want twice as many each time, up to half of the slots", waves)
	}
}

func TestTaskThatHasLostThreeExecutorsRunsSolo(t *testing.T) {
	q := probationOf(20, repeat(2, 7)...)
	q.wave()
	q.wave()
	beside := q.pickAny(MaxClaim, 0) // the other four
	q.AddDue([]row.Due{{ID: 8, Tag: "a", Due: 1, CrashCount: 3}, {ID: 9, Tag: "a", Due: 1, CrashCount: 4}}, false, 0)
	for _, it := range beside {
		if got := q.pickAny(MaxClaim, 0); len(got) != 0 {
			t.Fatalf("picked %v beside %v", idsIn(got), it.ID)
		}
		q.Release(it, Proven)
	}
	for _, want := range []int64{8, 9} {
		picked := q.pickAny(MaxClaim, 0)
		if got := q.pickAny(MaxClaim, 0); !slices.Equal(idsIn(picked), []int64{want}) || len(got) != 0 {
			t.Fatalf("picked %v and then %v, want %d solo", idsIn(picked), idsIn(got), want)
		}
		q.Release(picked[0], Proven)
	}
}

func TestTaskWhoseNextLossIsItsLastRunsSolo(t *testing.T) {
	q := New(20, 3, Limits{Timers: 10, Backlog: 10})
	q.Serve("a", true, 20)
	for id := range int64(4) {
		q.AddDue([]row.Due{{ID: id + 1, Tag: "a", Due: 1, CrashCount: 2}}, false, 0)
	}
	for range 4 {
		if ids := q.wave(); len(ids) != 1 {
			t.Errorf("picked %v together", ids)
		}
	}
}

func TestSoloTasksTakeTurnsWithOthersOnProbation(t *testing.T) {
	q := probationOf(8, append(repeat(2, 30), repeat(3, 3)...)...)
	var solo []int
	for n := 0; ; n++ {
		ids := q.wave()
		if len(ids) == 0 {
			break
		}
		if len(ids) == 1 && ids[0] > 30 {
			solo = append(solo, n)
		}
	}
	if !slices.Equal(solo, []int{1, 3, 5}) {
		t.Errorf("those that run picked had the turns %v, want every other one", solo)
	}
}

package cluster

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

// idsAt makes ids as a process at a steady rate does, keeping one of every step. The sequence starts at 0, not at
// random as a process's does: of the 4,096 starts, one in 2,000 is uneven by chance alone.
func idsAt(perSecond, step, count int) []int64 {
	now := noon.Add(-time.Minute)
	source := ids.NewSource(9, func() time.Time { return now })
	for seq := -1; seq != 4095; {
		_, _, seq = ids.Split(source.Next())
	}
	now = noon
	var kept []int64
	for n := 0; len(kept) < count; n++ {
		if perSecond > 0 {
			now = now.Add(time.Second / time.Duration(perSecond))
		}
		if id := source.Next(); n%step == 0 {
			kept = append(kept, id)
		}
	}
	return kept
}

// numbersOf returns ids as AUTO_INCREMENT gives them with an auto_increment_increment, after the id where it stood.
func numbersOf(after int64, step, count int) []int64 {
	ids := make([]int64, count)
	for i := range ids {
		ids[i] = after + int64((i+1)*step)
	}
	return ids
}

// unevenness is chi-square in standard deviations from what chance gives: about 0 when even, below 6 with near
// certainty.
func unevenness(ids []int64, total int, share func(int64) int) float64 {
	counts := make([]float64, total)
	for _, id := range ids {
		counts[share(id)]++
	}
	want := float64(len(ids)) / float64(total)
	var chi2 float64
	for _, got := range counts {
		chi2 += (got - want) * (got - want) / want
	}
	free := float64(total - 1)
	return (chi2 - free) / math.Sqrt(2*free)
}

// TestSharesDivideEvenly asks the nodes themselves, of ids that processes and servers make in all their ways.
func TestSharesDivideEvenly(t *testing.T) {
	t.Parallel()
	const count = 1500
	ids := map[string][]int64{}
	for _, step := range []int{1, 3, 7, 64} {
		for _, perSecond := range []int{10, 1000, 0} {
			ids[fmt.Sprintf("%d per second (0: in bulk), step %d", perSecond, step)] = idsAt(perSecond, step, count)
		}
		ids[fmt.Sprintf("AUTO_INCREMENT of an empty table, step %d", step)] = numbersOf(0, step, count)
		ids[fmt.Sprintf("AUTO_INCREMENT behind our ids, step %d", step)] = numbersOf(idsAt(0, 1, 1)[0], step, count)
	}
	due, worstPlain := viewTime.Add(time.Hour), 0.0
	for name, ids := range ids {
		t.Run(name, func(t *testing.T) {
			for total := 2; total <= 64; total++ {
				if off := unevenness(ids, total, shareOf(t, total, due)); off > 8 {
					t.Errorf("%d nodes: chi-square is %.1f standard deviations off", total, off)
				}
				worstPlain = max(worstPlain, unevenness(ids, total,
					func(id int64) int { return int(id % int64(total)) }))
			}
		})
	}
	if worstPlain < 100 {
		t.Errorf("the plain id is never worse than %.1f standard deviations: this test would not notice a missing mix",
			worstPlain)
	}
}

// shareOf returns which of total nodes takes a task as its own. It asks every node once.
func shareOf(t *testing.T, total int, due row.Time) func(int64) int {
	t.Helper()
	nodes := make([]row.Node, total)
	for i := range nodes {
		nodes[i] = node(3*i+1, "a")
	}
	views := make([]*View, total)
	for i, n := range nodes {
		views[i] = NewView(n.Token, nodes, viewTime, viewRule)
	}
	return func(id int64) int {
		return slices.IndexFunc(views, func(v *View) bool { return v.Mine(id, due, "a") })
	}
}

func TestSlotsNeverChange(t *testing.T) {
	t.Parallel()
	for id, want := range map[int64]int{1: 2, 794354227819772011: 700} {
		if got := ids.HashSlot(id); got != want {
			t.Errorf("task %d is of slot %d, want %d: nodes of two versions would disagree", id, got, want)
		}
	}
	if got := divide([]int{1, 5, 9, 30, 31})[77]; got != [Turns]int16{2, 0, 3, 1} {
		t.Errorf("%v take slot 77: nodes of two versions would disagree", got)
	}
}

// takes counts the slots that each server takes in a turn, of those that the one at this position owns, -1 for all.
func takes(of *takers, turn, owner, total int) []int {
	counts := make([]int, total)
	for _, positions := range of {
		if owner < 0 || int(positions[0]) == owner {
			counts[positions[turn]]++
		}
	}
	return counts
}

func numbered(total int) []int {
	numbers := make([]int, total)
	for i := range numbers {
		numbers[i] = 3*i + 1
	}
	return numbers
}

// The successors of a node are all others alike, so that no node alone gets the work of a node that has died.
func TestSuccessorsAreAllOthers(t *testing.T) {
	t.Parallel()
	for total := 2; total <= 16; total++ {
		successors := takes(divide(numbered(total)), 1, 1, total)
		for at, n := range successors {
			fair := ids.HashSlots / total / (total - 1)
			if at == 1 && n > 0 || at != 1 && (n < fair/4 || n > 4*fair+4) {
				t.Errorf("of %d nodes %v take the slots of the second", total, successors)
				break
			}
		}
	}
}

func TestEachRowHasDifferentTakers(t *testing.T) {
	t.Parallel()
	for _, total := range []int{1, 2, 3, 4, 5, 100, 512} {
		for slot, positions := range divide(numbered(total)) {
			some := positions[:min(Turns, total)]
			if distinct := slices.Compact(slices.Sorted(slices.Values(some))); len(distinct) != len(some) {
				t.Fatalf("of %d nodes %v take slot %d", total, some, slot)
			}
		}
		if most := slices.Max(takes(divide(numbered(total)), 0, -1, total)); most > (ids.HashSlots+total-1)/total {
			t.Errorf("one of %d nodes owns %d slots", total, most)
		}
	}
}

func TestAPartHasTheSlotsOfItsTurns(t *testing.T) {
	t.Parallel()
	of := divide(numbered(30))
	for turns, share := range of.parts(7) {
		want := 0
		for _, positions := range of {
			if slices.Contains(positions[:turns+1], 7) {
				want++
			}
		}
		if got := share.Slots(); got != want {
			t.Errorf("%d slots within %d turns, want %d", got, turns+1, want)
		}
	}
}

// Nodes see another one join or leave at different moments. Where that moves many rows, two nodes claim them.
func TestANodeThatJoinsTakesOnlyItsOwnSlots(t *testing.T) {
	t.Parallel()
	for _, total := range []int{2, 3, 10, 30, 100} {
		numbers := numbered(total)
		without := slices.Delete(slices.Clone(numbers), total/2, total/2+1)
		all, rest := divide(numbers), divide(without)
		moved := 0
		for slot := range all {
			if numbers[all[slot][0]] != without[rest[slot][0]] {
				moved++
			}
		}
		if most := ids.HashSlots/total + ids.HashSlots/20; moved > most {
			t.Errorf("the owners of %d slots differ without one of %d nodes, want at most %d", moved, total, most)
		}
	}
}

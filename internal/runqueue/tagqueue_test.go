package runqueue

import (
	"fmt"
	"slices"
	"testing"
)

// checkTagLines compares what is known of the tags with the rows that there are.
func checkTagLines(t interface{ Fatalf(string, ...any) }, h *Queue) {
	armed := map[*tagLine]int{}
	for id := range int64(30) {
		if e, ok := h.heap.Get(id); ok {
			armed[h.lines.byNumber[e.Tag]]++
		}
	}
	for n, line := range h.lines.byNumber {
		switch {
		case line == nil && slices.Contains(h.lines.free, uint32(n)):
		case line == nil || line.number != uint32(n) || h.lines.byTag[line.tag] != line:
			t.Fatalf("number %d leads to %+v", n, line)
		case line.armed != armed[line]:
			t.Fatalf("%d timers of %s are counted, there are %d", line.armed, line.tag, armed[line])
		case line.atWork != slices.Contains(h.lines.working, line), !line.atWork && !line.atRest():
			t.Fatalf("%s is at work: %t, at rest: %t", line.tag, line.atWork, line.atRest())
		case !line.open && !line.atWork && line.armed == 0 && line.pops.wanted == 0:
			t.Fatalf("%s is not forgotten", line.tag)
		}
	}
	for _, it := range h.held {
		if it.slot && h.lines.byTag[it.line.tag] != it.line {
			t.Fatalf("%s has a row with a slot, and is forgotten", it.line.tag)
		}
	}
	if known := len(h.lines.byNumber) - len(h.lines.free); known != len(h.lines.byTag) {
		t.Fatalf("%d tags by number, %d by name", known, len(h.lines.byTag))
	}
}

// A row that no claim could take goes back to its line after a while, and its tag may have come and gone meanwhile.
func TestRowThatIsPutBackFindsTheLineThatItsTagHasNow(t *testing.T) {
	h := handsFor(4, 4, "a")
	h.withSurplus(0)
	h.AddDue(sightings("a", 1, 1), false, 0)
	it := h.pickAny(1, 0)[0]
	h.Yield(it, Slot)
	h.Serve("a", false, 0)
	h.WithTaker(nil)
	h.Serve("a", true, 4)
	h.Release(it, Unclaimed)
	if got := h.pickAny(1, 0); len(got) != 1 || got[0] != it || h.lines.byTag["a"].busy != 1 {
		t.Errorf("picked %v; the tag has %d rows that are claimed", idsIn(got), h.lines.byTag["a"].busy)
	}
}

func TestTagsThatAreServedAndHaveNothingToDoAreNotWalkedThrough(t *testing.T) {
	h := New(4, 5, Limits{Timers: 1000, Backlog: 1000})
	for n := range 1000 {
		h.Serve(fmt.Sprint(n), true, 4)
	}
	h.AddDue(sightings("7", 1, 3), false, 0)
	if it := h.pickAny(1, 0); len(it) != 1 || len(h.lines.working) != 1 {
		t.Errorf("%d picked, and %d tags walked through", len(it), len(h.lines.working))
	}
}

func TestBacklogsRoundGoesOnWhenATagComesToRest(t *testing.T) {
	h := handsFor(1, 1, "a", "b", "c")
	h.withSurplus(0)
	h.AddDue(sightings("a", 1, 1), true, 0)
	h.AddDue(sightings("b", 11, 3), true, 0)
	h.AddDue(sightings("c", 21, 3), true, 0)
	var order []int64
	for range 7 {
		for _, it := range h.Pick(1, 0, true) {
			order = append(order, it.ID)
			h.Release(it, Ended)
		}
		for _, line := range h.lines.working {
			line.flow = flow{}
		}
	}
	if want := []int64{1, 11, 21, 12, 22, 13, 23}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// checkTagLines compares what is known of the tags with the rows that there are.
func checkTagLines(t interface{ Fatalf(string, ...any) }, h *hands) {
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
	h.due(sightings("a", 1, 1), false, 0)
	it := h.pickAny(1, 0)[0]
	h.freeSlot(it)
	h.serve("a", false, 0)
	h.withTaker(nil)
	h.serve("a", true, 4)
	h.putBack(it)
	if got := h.pickAny(1, 0); len(got) != 1 || got[0] != it || h.lines.byTag["a"].busy != 1 {
		t.Errorf("picked %v; the tag has %d rows that are claimed", idsIn(got), h.lines.byTag["a"].busy)
	}
}

func TestTagsThatAreServedAndHaveNothingToDoAreNotWalkedThrough(t *testing.T) {
	h := newHands(4, 5, limits{heap: 1000, backlog: 1000})
	for n := range 1000 {
		h.serve(fmt.Sprint(n), true, 4)
	}
	h.due(sightings("7", 1, 3), false, 0)
	if it := h.pickAny(1, 0); len(it) != 1 || len(h.lines.working) != 1 {
		t.Errorf("%d picked, and %d tags walked through", len(it), len(h.lines.working))
	}
}

func TestBacklogsRoundGoesOnWhenATagComesToRest(t *testing.T) {
	h := handsFor(1, 1, "a", "b", "c")
	h.withSurplus(0)
	h.due(sightings("a", 1, 1), true, 0)
	h.due(sightings("b", 11, 3), true, 0)
	h.due(sightings("c", 21, 3), true, 0)
	var order []int64
	for range 7 {
		for _, it := range h.pick(1, 0, true) {
			order = append(order, it.ID)
			h.letGo(it)
		}
		for _, line := range h.lines.working {
			line.flow = flow{}
		}
	}
	if want := []int64{1, 11, 21, 12, 22, 13, 23}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

func TestTagsThatWerePoppedOnceAreForgotten(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"served": untilEnd(0, nil)})
		known := func() (int, int) {
			n := e.hands.counts()
			return n.named, n.lines
		}
		before, _ := known()
		for round := range 5 {
			for n := range 50 {
				tag := fmt.Sprintf("%d.%d", round, n)
				w.save(e, tag, 0)
				task := w.take(e, tag)
				w.must(e.Finish(w.Context(), task.ID, task.Version))
			}
			time.Sleep(popServes + 3*time.Second)
		}
		w.save(e, "served", 0)
		time.Sleep(time.Second)
		if named, numbered := known(); named > before+1 || numbered > 100 {
			w.Errorf("%d tags are known after 250 that were popped once, %d before; %d numbers are in use", named, before, numbered)
		}
	})
}

func TestNodeServesOnlySoManyTagsThatAreJustPopped(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		tags := make([]string, mostPopped)
		for n := range tags {
			tags[n] = fmt.Sprint(n)
		}
		pop := func(tags ...string) error {
			_, err := e.Pop(w.Context(), PopRequest{Tags: tags, Max: 1, Waits: true})
			return err
		}
		w.must(pop(tags...))
		if err := pop("one more"); !errors.Is(err, processor.ErrOverloaded) {
			w.Errorf("one more: %v", err)
		}
		if err := pop(tags[:2]...); err != nil {
			w.Errorf("one of those: %v", err)
		}
		time.Sleep(popServes + 2*time.Second)
		if err := pop("one more"); err != nil {
			w.Errorf("after a while: %v", err)
		}
	})
}

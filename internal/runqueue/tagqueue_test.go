package runqueue

import (
	"fmt"
	"slices"
	"testing"
)

// checkTags compares what is known of the tags with the rows that there are.
func checkTags(t interface{ Fatalf(string, ...any) }, q *Queue) {
	armed := map[*tagQueue]int{}
	for id := range int64(30) {
		if e, ok := q.timers.Get(id); ok {
			armed[q.tags.byNumber[e.Tag]]++
		}
	}
	for n, tag := range q.tags.byNumber {
		switch {
		case tag == nil && slices.Contains(q.tags.free, uint32(n)):
		case tag == nil || tag.number != uint32(n) || q.tags.byName[tag.name] != tag:
			t.Fatalf("number %d leads to %+v", n, tag)
		case tag.armed != armed[tag]:
			t.Fatalf("%d timers of %s are counted, there are %d", tag.armed, tag.name, armed[tag])
		case tag.active != slices.Contains(q.tags.active, tag), !tag.active && !tag.isIdle():
			t.Fatalf("%s is active: %t, idle: %t", tag.name, tag.active, tag.isIdle())
		case !tag.open && !tag.active && tag.armed == 0 && tag.pops.wanted == 0:
			t.Fatalf("%s is not forgotten", tag.name)
		}
	}
	for _, it := range q.owned {
		if it.claimed && q.tags.byName[it.tag.name] != it.tag {
			t.Fatalf("%s has a row with a slot, and is forgotten", it.tag.name)
		}
	}
	if known := len(q.tags.byNumber) - len(q.tags.free); known != len(q.tags.byName) {
		t.Fatalf("%d tags by number, %d by name", known, len(q.tags.byName))
	}
}

// A row that no claim could take goes back to its tag after a while, and its tag may have come and gone meanwhile.
func TestUnclaimedRowGoesBackToTheQueueThatItsTagHasNow(t *testing.T) {
	q := queueFor(4, 4, "a")
	q.withPrefetch(0)
	q.AddDue(sightings("a", 1, 1), false, 0)
	it := q.pickAny(1, 0)[0]
	q.Yield(it, Slot)
	q.Serve("a", false, 0)
	q.WithTaker(nil)
	q.Serve("a", true, 4)
	q.Release(it, Unclaimed)
	if got := q.pickAny(1, 0); len(got) != 1 || got[0] != it || q.tags.byName["a"].claimed != 1 {
		t.Errorf("picked %v; the tag has %d rows that are claimed", idsIn(got), q.tags.byName["a"].claimed)
	}
}

func TestIdleTagsAreNotWalkedThrough(t *testing.T) {
	q := New(4, 5, Limits{Timers: 1000, Backlog: 1000})
	for n := range 1000 {
		q.Serve(fmt.Sprint(n), true, 4)
	}
	q.AddDue(sightings("7", 1, 3), false, 0)
	if it := q.pickAny(1, 0); len(it) != 1 || len(q.tags.active) != 1 {
		t.Errorf("%d picked, and %d tags walked through", len(it), len(q.tags.active))
	}
}

func TestBacklogsRoundGoesOnWhenATagComesToRest(t *testing.T) {
	q := queueFor(1, 1, "a", "b", "c")
	q.withPrefetch(0)
	q.AddDue(sightings("a", 1, 1), true, 0)
	q.AddDue(sightings("b", 11, 3), true, 0)
	q.AddDue(sightings("c", 21, 3), true, 0)
	var order []int64
	for range 7 {
		for _, it := range q.Pick(1, 0, true) {
			order = append(order, it.ID)
			q.Release(it, Ended)
		}
		for _, tag := range q.tags.active {
			tag.rate = rate{}
		}
	}
	if want := []int64{1, 11, 21, 12, 22, 13, 23}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

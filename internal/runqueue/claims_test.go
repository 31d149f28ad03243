package runqueue

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue/timer"
)

func everyTimer(timer.Entry, string) bool { return true }

// ms is the moment n milliseconds after the beginning of time.
func ms(n int64) row.Time { return row.Time(0).Add(time.Duration(n) * time.Millisecond) }

var ahead40 = Window{Near: 2 * time.Millisecond, First: 15 * time.Millisecond, Last: 40 * time.Millisecond}

func TestSlotsStayFreeOfRowsThatAreNotDueYet(t *testing.T) {
	for _, c := range []struct{ concurrency, limit, ahead int }{
		{64, 64, 56}, {64, 8, 7}, {64, 2, 1}, {64, 1, 0}, {8, 64, 7}, {1, 64, 0},
	} {
		q := queueFor(c.concurrency, c.limit, "a")
		for id := range int64(200) {
			q.Arm(row.Due{ID: id + 1, Tag: "a", Due: ms(10)}, true)
		}
		q.Fire(ms(1), ahead40, everyTimer)
		if got := len(q.pickAny(MaxClaim, ms(1))); got != c.ahead {
			t.Errorf("%d slots, %d for the tag: %d are taken ahead of time, want %d", c.concurrency, c.limit, got,
				c.ahead)
		}
		q.AddDue([]row.Due{{ID: 1000, Tag: "a", Due: ms(1)}}, false, ms(1))
		if got := idsIn(q.pickAny(MaxClaim, ms(1))); !slices.Equal(got, []int64{1000}) {
			t.Errorf("%d slots, %d for the tag: picked %v for what is due now", c.concurrency, c.limit, got)
		}
	}
}

func TestRowThatIsNearlyDueTakesTheLastSlot(t *testing.T) {
	q := queueFor(64, 1, "a")
	q.Arm(row.Due{ID: 1, Tag: "a", Due: ms(10)}, true)
	if wait := q.Fire(ms(1), ahead40, everyTimer); wait != 7*time.Millisecond {
		t.Errorf("the next look is in %v, want it when the row is nearly due", wait)
	}
	if got := q.pickAny(MaxClaim, ms(1)); len(got) != 0 {
		t.Fatalf("picked %v", idsIn(got))
	}
	q.Fire(ms(8), ahead40, everyTimer)
	if got := idsIn(q.pickAny(MaxClaim, ms(8))); !slices.Equal(got, []int64{1}) {
		t.Errorf("picked %v when the row is nearly due", got)
	}
}

func TestSlotOfARowThatHasBegunIsNotHeldAheadAnyMore(t *testing.T) {
	q := queueFor(64, 2, "a")
	for id := range int64(3) {
		q.Arm(row.Due{ID: id + 1, Tag: "a", Due: ms(10 + id)}, true)
	}
	q.Fire(ms(1), ahead40, everyTimer)
	first := q.pickAny(MaxClaim, ms(1))
	if len(first) != 1 || len(q.pickAny(MaxClaim, ms(1))) != 0 {
		t.Fatalf("picked %v of two slots", idsIn(first))
	}
	q.Slots.Enter(first[0])
	if got := idsIn(q.pickAny(MaxClaim, ms(1))); !slices.Equal(got, []int64{2}) {
		t.Errorf("then picked %v", got)
	}
}

// Rows that are not due yet go by due time: one that is due later must not go first for its high priority.
func TestPriorityCountsAmongWhatIsDueNow(t *testing.T) {
	q := queueFor(2, 2, "a")
	q.Arm(row.Due{ID: 1, Tag: "a", Due: ms(10)}, true)
	q.Arm(row.Due{ID: 2, Tag: "a", Due: ms(30), Priority: 100}, true)
	q.Fire(ms(1), ahead40, everyTimer)
	if got := idsIn(q.pickAny(MaxClaim, ms(1))); !slices.Equal(got, []int64{1}) {
		t.Errorf("picked %v", got)
	}
}

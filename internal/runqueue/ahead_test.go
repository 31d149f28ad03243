package runqueue

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

func everyTimer(timer.Entry, string) bool { return true }

// ms is a moment so many milliseconds after the beginning of time.
func ms(n int64) row.Time { return row.Time(0).Add(time.Duration(n) * time.Millisecond) }

var leadOf40 = Window{Near: 2 * time.Millisecond, First: 15 * time.Millisecond, Last: 40 * time.Millisecond}

func TestSlotsStayFreeOfRowsThatAreNotDueYet(t *testing.T) {
	for _, c := range []struct{ workers, limit, ahead int }{
		{64, 64, 56}, {64, 8, 7}, {64, 2, 1}, {64, 1, 0}, {8, 64, 7}, {1, 64, 0},
	} {
		h := handsFor(c.workers, c.limit, "a")
		for id := range int64(200) {
			h.Arm(row.Due{ID: id + 1, Tag: "a", Due: ms(10)}, true)
		}
		h.Fire(ms(1), leadOf40, everyTimer)
		if got := len(h.pickAny(MaxClaim, ms(1))); got != c.ahead {
			t.Errorf("%d slots, %d for the tag: %d are held ahead of time, want %d", c.workers, c.limit, got, c.ahead)
		}
		h.AddDue([]row.Due{{ID: 1000, Tag: "a", Due: ms(1)}}, false, ms(1))
		if got := idsIn(h.pickAny(MaxClaim, ms(1))); !slices.Equal(got, []int64{1000}) {
			t.Errorf("%d slots, %d for the tag: picked %v for what is due now", c.workers, c.limit, got)
		}
	}
}

func TestRowThatIsNearlyDueTakesTheLastSlot(t *testing.T) {
	h := handsFor(64, 1, "a")
	h.Arm(row.Due{ID: 1, Tag: "a", Due: ms(10)}, true)
	if wait := h.Fire(ms(1), leadOf40, everyTimer); wait != 7*time.Millisecond {
		t.Errorf("the next look is in %v, want it when the row is nearly due", wait)
	}
	if got := h.pickAny(MaxClaim, ms(1)); len(got) != 0 {
		t.Fatalf("picked %v", idsIn(got))
	}
	h.Fire(ms(8), leadOf40, everyTimer)
	if got := idsIn(h.pickAny(MaxClaim, ms(8))); !slices.Equal(got, []int64{1}) {
		t.Errorf("picked %v when the row is nearly due", got)
	}
}

func TestSlotOfARowThatHasBegunIsNotHeldAheadAnyMore(t *testing.T) {
	h := handsFor(64, 2, "a")
	for id := range int64(3) {
		h.Arm(row.Due{ID: id + 1, Tag: "a", Due: ms(10 + id)}, true)
	}
	h.Fire(ms(1), leadOf40, everyTimer)
	first := h.pickAny(MaxClaim, ms(1))
	if len(first) != 1 || len(h.pickAny(MaxClaim, ms(1))) != 0 {
		t.Fatalf("picked %v of two slots", idsIn(first))
	}
	h.Enter(first[0])
	if got := idsIn(h.pickAny(MaxClaim, ms(1))); !slices.Equal(got, []int64{2}) {
		t.Errorf("then picked %v", got)
	}
}

// What is not due yet goes by due time: a high priority must not let it start late beside one that is due later.
func TestPriorityCountsAmongWhatIsDueNow(t *testing.T) {
	h := handsFor(2, 2, "a")
	h.Arm(row.Due{ID: 1, Tag: "a", Due: ms(10)}, true)
	h.Arm(row.Due{ID: 2, Tag: "a", Due: ms(30), Priority: 100}, true)
	h.Fire(ms(1), leadOf40, everyTimer)
	if got := idsIn(h.pickAny(MaxClaim, ms(1))); !slices.Equal(got, []int64{1}) {
		t.Errorf("picked %v", got)
	}
}

package table

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// TestALockThatMayBeAKeysKeepsOnlyItsTagApart: the other tags were cleared when the lock was met first, and a tag whose
// saves have keys meets it again and again.
func TestALockThatMayBeAKeysKeepsOnlyItsTagApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRanges()
		r.MayWait("a", "b", "c")
		time.Sleep(LockWait + 1)
		key := KeyGroup(row.TagKey{Tag: "a", Key: "k"})
		r.MayWaitAlone(key, "a")
		wantApart := func(when string, want map[string]bool) {
			t.Helper()
			for group, want := range want {
				if got := r.Has(group); got != want {
					t.Errorf("%s: %q travels apart: %v, want %v", when, group, got, want)
				}
			}
		}
		wantApart("at once", map[string]bool{key: true, "a": true, "c": false})
		if tags := r.Tags(); len(tags) > 0 {
			t.Errorf("a range of %q is said to be locked", tags)
		}
		other := KeyGroup(row.TagKey{Tag: "a", Key: "other"})
		r.MayWaitAlone(other, "a")
		r.Passed(other)
		wantApart("after a statement of its own has met no lock", map[string]bool{other: false, key: true})
		r.Passed("a")
		time.Sleep(LockWait + 1)
		wantApart("after the key had time to meet the lock", map[string]bool{key: false, "a": true, "c": false})
		time.Sleep(apartFor)
		wantApart("after the tag has met none", map[string]bool{key: false, "a": false, "c": false})
	})
}

// TestALockCountsAsOnesOwnWhileCommitsAreSlow: its statements hold their rows while they wait for the disk.
func TestALockCountsAsOnesOwnWhileCommitsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &Table{Ranges: newRanges()}
		claim := func(took time.Duration) {
			began := time.Now()
			time.Sleep(took)
			table.Health.Claimed(nil, began)
		}
		meets := func() (apart bool) {
			MayWait(table, []string{"a"}, func(tag string) string { return tag })
			return table.Ranges.Has("a")
		}
		for range slowClaims {
			claim(slowClaim)
		}
		for range unclearLocks {
			if meets() {
				t.Error("a tag travels apart after the first locks")
			}
		}
		time.Sleep(unclearFor + 1)
		for n := range unclearLocks + 1 {
			if apart := meets(); apart != (n == unclearLocks) {
				t.Errorf("after %d locks in a row the tag travels apart: %t", n+1, apart)
			}
		}
		time.Sleep(LockWait)
		claim(slowClaim - 1)
		if !meets() {
			t.Error("no tag travels apart after a lock while commits are fast")
		}
	})
}

// TestALockThatIsFoundEndsTheDoubt: what was sent with the statement that has met it has had its time as well.
func TestALockThatIsFoundEndsTheDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRanges()
		r.MayWait("a", "m", "z")
		sent := time.Now().Add(1)
		time.Sleep(time.Second)
		r.Met("a", sent)
		for _, want := range []bool{true, false} {
			if got := r.Has("z"); got != want {
				t.Errorf("%v after the lock was met, another tag travels apart: %t", time.Since(sent), got)
			}
			time.Sleep(time.Second)
		}
		if !r.Has("a") || !r.Has("m") {
			t.Error("the tag that has met the lock, or the one beside it, does not travel apart")
		}
	})
}

// TestTurnsOfATagThatMeetsLocksShrink lets the rows that are free pass, and leaves connections to the other tags.
func TestTurnsOfATagThatMeetsLocksShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(8)
		begin := func(tag string, want int) {
			t.Helper()
			rows, wait := turns.Begin(tag, 10)
			if rows == 0 && want > 0 {
				time.Sleep(wait)
				rows, _ = turns.Begin(tag, 10)
			}
			if rows != want {
				t.Fatalf("the turn of %s has %d rows, want %d", tag, rows, want)
			}
		}
		for _, rows := range []int{8, 4, 2, 1, 1} {
			begin("a", rows)
			begin("a", 0) // its turn is taken
			turns.Locked("a", rows)
			turns.End("a")
			begin("a", 0) // it pauses
		}
		turns.Begin("b", 10)
		turns.Locked("b", 8)
		turns.End("b")
		time.Sleep(apartPause)
		begin("b", 4)
		begin("a", 0) // of those that have met a lock one is tried at a time
		begin("c", 8)
		turns.Passed("b")
		turns.End("b")
		for _, rows := range []int{1, 2, 4, 8} {
			begin("a", rows)
			turns.Passed("a")
			turns.End("a")
		}
	})
}

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

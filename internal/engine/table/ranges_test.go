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

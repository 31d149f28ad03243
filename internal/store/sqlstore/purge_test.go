package sqlstore

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLockedRowsAreLeftOutOfAPurgeForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h held
		h.add(place{part: "a"}, int64(2))
		h.add(place{part: "a"}, int64(1))
		if ids, all := heldAt[int64](&h, place{part: "a"}); len(ids) != 2 || all {
			t.Errorf("left out are %v, all: %t", ids, all)
		}
		if ids, all := heldAt[int64](&h, place{part: "b"}); ids != nil || all {
			t.Errorf("left out of another tag are %v, all: %t", ids, all)
		}
		time.Sleep(heldFor)
		if ids, _ := heldAt[int64](&h, place{part: "a"}); ids != nil {
			t.Errorf("left out after %v are %v", heldFor, ids)
		}
		for id := range int64(mostHeld) {
			h.add(place{part: "a"}, id)
		}
		if _, all := heldAt[int64](&h, place{part: "a"}); !all {
			t.Errorf("a tag with %d locked rows is read", mostHeld)
		}
	})
}

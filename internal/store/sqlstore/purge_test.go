package sqlstore

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLockedRowsAreLeftOutOfAPurgeForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h held
		h.add("a", 2)
		h.add("a", 1)
		if ids, all := h.of("a"); len(ids) != 2 || all {
			t.Errorf("left out are %v, all: %t", ids, all)
		}
		if ids, all := h.of("b"); ids != nil || all {
			t.Errorf("left out of another tag are %v, all: %t", ids, all)
		}
		time.Sleep(heldFor)
		if ids, _ := h.of("a"); ids != nil {
			t.Errorf("left out after %v are %v", heldFor, ids)
		}
		for id := range int64(mostHeld) {
			h.add("a", id)
		}
		if _, all := h.of("a"); !all {
			t.Errorf("a tag with %d locked rows is read", mostHeld)
		}
	})
}

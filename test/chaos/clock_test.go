package main

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/journal"
)

func TestEveryEventHasItsMomentOnBothClocks(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, ahead := range []time.Duration{5 * time.Second, -7 * time.Second} {
		said, noted := []journal.Event{{At: noon}}, []journal.Event{{At: noon.Add(ahead)}}
		onServersClock(ahead, said, noted)
		if said[0] != noted[0] || !said[0].At.Equal(noon) || !said[0].Clock.Equal(noon.Add(ahead)) {
			t.Errorf("%v: the same moment is %+v to a process and %+v to the database", ahead, said[0], noted[0])
		}
	}
	said := []journal.Event{{At: noon}}
	if onServersClock(0, said); !said[0].Clock.IsZero() {
		t.Errorf("one clock was made two: %+v", said[0])
	}
}

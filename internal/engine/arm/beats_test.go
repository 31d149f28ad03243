package arm

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNodesCountAsAliveForLongerWhereHeartbeatsAreLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const every = time.Second
		var b beats
		beat := func(after time.Duration) {
			time.Sleep(after)
			b.Beat(time.Now())
		}
		want := func(what string, alive time.Duration) {
			t.Helper()
			if got := b.alive(every, true); got != alive {
				t.Errorf("%s: a node is alive for %v, want %v", what, got, alive)
			}
		}
		want("at first", 2*every)
		for range 5 {
			beat(every + 50*time.Millisecond)
		}
		want("heartbeats in time", 2*every)
		time.Sleep(2 * every)
		want("one is late", 4*every)
		beat(0)
		want("it has come", 4*every)
		beat(10 * every)
		want("one was late by much", 8*every)
		for range lastBeats {
			beat(every)
		}
		want("they are in time again", 2*every)
		b.noteRead(200 * time.Millisecond)
		want("a read of the nodes was slow", 4*every)
		if got := b.alive(every, false); got != 2*every {
			t.Errorf("one of few nodes is alive for %v, want %v", got, 2*every)
		}
	})
}

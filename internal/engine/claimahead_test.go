package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClaimAheadFollowsTheRoundTripWithinItsBounds(t *testing.T) {
	for _, c := range []struct{ roundTrip, first time.Duration }{
		{0, claimAheadFloor},
		{time.Millisecond, claimAheadFloor},
		{10 * time.Millisecond, 40 * time.Millisecond},
		{time.Minute, maxClaimAhead - gatherAhead},
	} {
		var l claimAhead
		for range 100 {
			l.took(c.roundTrip)
		}
		s := l.window()
		if s.First != c.first || s.Last > maxClaimAhead || s.Last <= s.First || s.Near > s.First {
			t.Errorf("round trip %v: window %+v; want %v", c.roundTrip, s, c.first)
		}
	}
}

func TestOneSlowClaimHardlyMovesTheClaimAheadWindow(t *testing.T) {
	var l claimAhead
	for range 50 {
		l.took(2 * time.Millisecond)
	}
	l.took(30 * time.Millisecond)
	if first := l.window().First; first > 25*time.Millisecond {
		t.Errorf("the window is %v after one slow claim", first)
	}
}

func TestClaimAheadIsSaturatedWhileClaimsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l claimAhead
		if l.saturated() {
			t.Error("saturated before the first claim")
		}
		l.took(2 * time.Millisecond)
		if l.saturated() {
			t.Error("saturated by quick claims")
		}
		for range 50 {
			l.took(30 * time.Millisecond)
		}
		if !l.saturated() {
			t.Error("not saturated although tasks begin to be late")
		}
		time.Sleep(saturatedFor)
		if l.saturated() {
			t.Error("saturated for ever by a slow claim of long ago")
		}
	})
}

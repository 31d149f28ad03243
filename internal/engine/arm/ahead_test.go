package arm

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
		{time.Minute, MaxAhead - gatherAhead},
	} {
		var l Ahead
		for range 100 {
			l.Took(c.roundTrip)
		}
		s := l.window()
		if s.First != c.first || s.Last > MaxAhead || s.Last <= s.First || s.Near > s.First {
			t.Errorf("round trip %v: window %+v; want %v", c.roundTrip, s, c.first)
		}
	}
}

func TestOneSlowClaimHardlyMovesTheClaimAheadWindow(t *testing.T) {
	var l Ahead
	for range 50 {
		l.Took(2 * time.Millisecond)
	}
	l.Took(30 * time.Millisecond)
	if first := l.window().First; first > 25*time.Millisecond {
		t.Errorf("the window is %v after one slow claim", first)
	}
}

func TestClaimAheadIsSaturatedWhileClaimsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Ahead
		if l.Saturated() {
			t.Error("saturated before the first claim")
		}
		l.Took(2 * time.Millisecond)
		if l.Saturated() {
			t.Error("saturated by quick claims")
		}
		for range 50 {
			l.Took(30 * time.Millisecond)
		}
		if !l.Saturated() {
			t.Error("not saturated although tasks begin to be late")
		}
		time.Sleep(saturatedFor)
		if l.Saturated() {
			t.Error("saturated for ever by a slow claim of long ago")
		}
	})
}

package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLeadFollowsTheRoundTripWithinItsBounds(t *testing.T) {
	for _, c := range []struct{ roundTrip, first time.Duration }{
		{0, leadFloor},
		{time.Millisecond, leadFloor},
		{10 * time.Millisecond, 40 * time.Millisecond},
		{time.Minute, maxLead - leadGather},
	} {
		var l lead
		for range 100 {
			l.took(c.roundTrip)
		}
		s := l.span()
		if s.First != c.first || s.Last > maxLead || s.Last <= s.First || s.Near > s.First {
			t.Errorf("round trip %v: lead %+v; want %v", c.roundTrip, s, c.first)
		}
	}
}

func TestOneSlowClaimHardlyMovesTheLead(t *testing.T) {
	var l lead
	for range 50 {
		l.took(2 * time.Millisecond)
	}
	l.took(30 * time.Millisecond)
	if first := l.span().First; first > 25*time.Millisecond {
		t.Errorf("the lead is %v after one slow claim", first)
	}
}

func TestLeadIsStrainedWhileClaimsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lead
		if l.strained() {
			t.Error("strained before the first claim")
		}
		l.took(2 * time.Millisecond)
		if l.strained() {
			t.Error("strained by quick claims")
		}
		for range 50 {
			l.took(30 * time.Millisecond)
		}
		if !l.strained() {
			t.Error("not strained although tasks begin to be late")
		}
		time.Sleep(strainedFor)
		if l.strained() {
			t.Error("strained for ever by a slow claim of long ago")
		}
	})
}

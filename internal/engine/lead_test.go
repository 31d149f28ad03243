package engine

import (
	"testing"
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
		if s.first != c.first || s.window > maxLead || s.window <= s.first || s.tight > s.first {
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
	if first := l.span().first; first > 25*time.Millisecond {
		t.Errorf("the lead is %v after one slow claim", first)
	}
}

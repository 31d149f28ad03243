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
		first, window := l.span()
		if first != c.first || window > maxLead || window <= first {
			t.Errorf("round trip %v: lead %v, window %v; want %v", c.roundTrip, first, window, c.first)
		}
	}
}

func TestOneSlowClaimHardlyMovesTheLead(t *testing.T) {
	var l lead
	for range 50 {
		l.took(2 * time.Millisecond)
	}
	l.took(30 * time.Millisecond)
	if first, _ := l.span(); first > 25*time.Millisecond {
		t.Errorf("the lead is %v after one slow claim", first)
	}
}

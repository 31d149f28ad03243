package table

import (
	"testing"
	"time"
)

func TestOutageIsASilenceThatALeaseMayNotOutlive(t *testing.T) {
	o := newOutage(15 * time.Second)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hear := func(after time.Duration, want bool) {
		t.Helper()
		at = at.Add(after)
		if _, over := o.answered(at); over != want {
			t.Errorf("an answer after %v ends an outage: %t, want %t", after, over, want)
		}
	}
	hear(0, false)
	hear(4900*time.Millisecond, false)
	if o.Holds(at) {
		t.Error("it holds without an outage")
	}
	hear(5*time.Second, true)
	if _, over := o.answered(at.Add(-time.Second)); over {
		t.Error("an answer that arrived late ends an outage")
	}
	hear(time.Second, false)
	if !o.Holds(at.Add(3900*time.Millisecond)) || o.Holds(at.Add(4*time.Second)) {
		t.Error("it holds for another time than 5 s from when the database was back")
	}
}

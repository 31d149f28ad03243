package main

import (
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

// TestTheDemoHappensAsItSays runs the demo with its real processes, one of which is killed.
func TestTheDemoHappensAsItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 8 seconds")
	}
	t.Parallel()
	s := newShell(t)
	var d demoSummary
	s.decode(&d, "demo")
	if d.Saved != len(script)+1 || d.Completed != 9 || d.Cancelled != 1 || d.Retries != 2 || d.Rescued != 1 ||
		len(d.Tags) != 6 {
		t.Errorf("the summary is %+v", d)
	}
}

func TestTheDemoReportsWhatWentWrong(t *testing.T) {
	t.Parallel()
	row, due := delaytask.TaskRow{Status: delaytask.Completed, Attempt: 1}, time.Now()
	f := func(want string, s *scene, row delaytask.TaskRow, starts ...event) {
		t.Helper()
		if err := s.check(&row, starts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it tells %v, want %s", err, want)
		}
	}
	f("is failed, attempts 2, crashes 1, not completed", &script[1],
		delaytask.TaskRow{Status: delaytask.Failed, Attempt: 2, CrashCount: 1})
	f("started 0 times, not 1", &script[1], row)
	f("before it was due", &script[1], row, event{Due: due, At: due.Add(-1)})
	row.CrashCount = 1
	f("by another process", &script[7], row, event{Worker: 7}, event{Worker: 7})
}

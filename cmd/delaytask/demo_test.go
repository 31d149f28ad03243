package main

import (
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	judge "github.com/delaytask/delaytask/internal/bench/lateness"
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
	if d.Saved != len(script)+1 || d.Completed != 9 || d.Cancelled != 1 || d.Failed != 0 || d.Retries != 2 ||
		d.Rescheduled != 1 || d.Rescued != 1 || d.Duplicates != 1 || d.Lost != 0 || d.Early != 0 || len(d.Tags) != 6 ||
		len(d.Wrong) != 0 {
		t.Errorf("the summary is %+v", d)
	}
}

func TestTheDemoCannotReachItsDatabase(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.run("demo", "--dsn", "user:s3cret@tcp(127.0.0.1:1)/db")
	if r.code != exitFailed || r.stdout != "" {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	contains(t, r.stderr, "the demo did not end as it should", "127.0.0.1:1")
}

func TestAnEarlyStartIsSeen(t *testing.T) {
	t.Parallel()
	due := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	server := judge.Clock{Ahead: 100 * time.Millisecond, Within: 10 * time.Millisecond}
	for wait, early := range map[time.Duration]bool{
		-111 * time.Millisecond: true, -109 * time.Millisecond: false, 0: false,
	} {
		if certainlyEarly(event{At: due.Add(wait), Due: due}, server) != early {
			t.Errorf("%v after due: early is not %t", wait, early)
		}
	}
}

func TestTheDemoReportsWhatWentWrong(t *testing.T) {
	t.Parallel()
	var s demoSummary
	s.check(&script[1], &delaytask.TaskRow{Status: delaytask.Failed, Attempt: 2, CrashCount: 1}, 0)
	if len(s.Wrong) != 1 || !strings.Contains(s.Wrong[0], "is failed, attempts 2, crashes 1, not completed") {
		t.Errorf("it tells %q", s.Wrong)
	}
}

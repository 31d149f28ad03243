package main

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

var due = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func completed(id int64) delaytask.Task {
	return delaytask.Task{ID: id, Status: delaytask.Completed, Expected: due}
}

func TestJudgeSeesWhatIsWrong(t *testing.T) {
	unfinished := delaytask.Task{ID: 5, Status: delaytask.Executing, Expected: due}
	tasks := []delaytask.Task{completed(1), completed(2), completed(3), completed(4), unfinished}
	seen := newStarts(len(tasks))
	seen.add(1, due.Add(2*time.Millisecond))
	seen.add(2, due.Add(-time.Microsecond)) // early
	seen.add(3, due.Add(time.Second))       // the second start, noted first
	seen.add(3, due.Add(time.Millisecond))
	seen.add(5, due) // did not end; and 4 never started

	j := judge(tasks, seen, 0)
	if j.once != 2 {
		t.Errorf("%d tasks ran exactly once, want 1 and 2", j.once)
	}
	if j.early != 1 {
		t.Errorf("%d tasks were early, want only 2", j.early)
	}
	if len(j.late) != 4 || j.late.percentile(100) != 2*time.Millisecond {
		t.Errorf("lateness %v, want that of the first starts of four tasks", j.late)
	}
	if falsified := judge(tasks, seen, 5*time.Millisecond); falsified.early != 4 {
		t.Errorf("%d tasks were early by falsified due times, want all four that started", falsified.early)
	}
}

func TestStartsAreFullWithTheLastNewTask(t *testing.T) {
	seen := newStarts(2)
	seen.add(1, due)
	seen.add(1, due)
	select {
	case <-seen.full:
		t.Fatal("full with one task that started twice")
	default:
	}
	seen.add(2, due)
	seen.add(2, due)
	if err := seen.wait(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
}

func TestPercentileIsAMeasuredFigure(t *testing.T) {
	var l lateness
	for i := range 200 {
		l = append(l, time.Duration(200-i))
	}
	for p, want := range map[int]time.Duration{50: 100, 99: 198, 100: 200} {
		if got := l.percentile(p); got != want {
			t.Errorf("p%d is %d, want %d", p, got, want)
		}
	}
	if got := (lateness)(nil).percentile(99); got != 0 {
		t.Errorf("p99 of nothing is %v", got)
	}
}

func TestWithinWantsAllAndAtLeastOne(t *testing.T) {
	for _, tt := range []struct {
		l    lateness
		n    int
		want bool
	}{
		{lateness{1, 2}, 2, true},
		{lateness{1, 3}, 2, false}, // one is late
		{lateness{1}, 2, false},    // one is missing
		{nil, 0, false},            // the proof met no such case
	} {
		if got := within(tt.l, tt.n, 2); got != tt.want {
			t.Errorf("%v of %d within 2: %v, want %v", tt.l, tt.n, got, tt.want)
		}
	}
}

func TestMomentsAreDifferent(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, m := range moments(900, time.Millisecond) {
		if m < 0 || m >= time.Millisecond || m != m.Truncate(time.Microsecond) || seen[m] {
			t.Fatalf("moment %v is a second one, or none of the span", m)
		}
		seen[m] = true
	}
}

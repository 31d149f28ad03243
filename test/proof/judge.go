package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
)

// starts collects when processors started, by the clock that they read as the first thing they did.
type starts struct {
	mu   sync.Mutex
	seen map[int64][]time.Time // by the task's id
	want int
	full chan struct{} // closed when so many different tasks were seen
}

func newStarts(want int) *starts {
	return &starts{seen: make(map[int64][]time.Time, want), want: want, full: make(chan struct{})}
}

func (s *starts) add(id int64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[id] = append(s.seen[id], at)
	if len(s.seen) == s.want && len(s.seen[id]) == 1 {
		close(s.full)
	}
}

// first tells when a task started for the first time, and whether it did.
func (s *starts) first(id int64) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen[id]) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(s.seen[id], time.Time.Compare), true
}

func (s *starts) count(id int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen[id])
}

// wait returns when all have started or the time is up; what is missing then is for the judge.
func (s *starts) wait(ctx context.Context, limit time.Duration) error {
	select {
	case <-s.full:
		return nil
	case <-time.After(limit):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// judgement compares what the table promised with what processors saw.
type judgement struct {
	once  int      // tasks that started exactly once and are completed
	early int      // tasks that started before they were expected
	late  lateness // of the first starts
}

// judge takes the expected times from the table, each moved by shift: 0, except to see that the judge is not blind.
func judge(tasks []delaytask.Task, s *starts, shift time.Duration) judgement {
	var j judgement
	for _, task := range tasks {
		at, started := s.first(task.ID)
		if !started {
			continue
		}
		if s.count(task.ID) == 1 && task.Status == delaytask.Completed {
			j.once++
		}
		late := at.Sub(task.Expected.Add(shift))
		if late < 0 {
			j.early++
		}
		j.late = append(j.late, late)
	}
	return j
}

type lateness []time.Duration

// percentile takes the nearest rank: every figure is one that was measured.
func (l lateness) percentile(p int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(l))[(len(l)*p+99)/100-1]
}

func (l lateness) String() string {
	if len(l) == 0 {
		return "nothing started"
	}
	p50, p99, most := l.percentile(50), l.percentile(99), l.percentile(100)
	return fmt.Sprintf("%s / %s / %s", milliseconds(p50), milliseconds(p99), milliseconds(most))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// of is "n of m".
func of(n, m int) string { return fmt.Sprintf("%d of %d", n, m) }

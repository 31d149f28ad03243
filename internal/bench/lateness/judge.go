package lateness

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
)

// Judgement compares what the table promised with what processors saw.
type Judgement struct {
	Once   int             // tasks that started exactly once and are completed
	Lost   int             // tasks that never started, or are not completed
	Extra  int             // starts beyond the first of each task
	Early  int             // tasks that started before they were expected
	Starts []time.Duration // how late the first starts were
}

// Judge takes the expected times from the table, each moved by shift: 0, except to see that the judge is not blind.
func Judge(tasks []delaytask.TaskRow, s *Starts, shift time.Duration) Judgement {
	var j Judgement
	for _, task := range tasks {
		at, started := s.First(task.ID)
		count := s.Count(task.ID)
		switch {
		case !started || task.Status != delaytask.Completed:
			j.Lost++
		case count == 1:
			j.Once++
		}
		if !started {
			continue
		}
		j.Extra += count - 1
		late := at.Sub(task.Expected.Add(shift))
		if late < 0 {
			j.Early++
		}
		j.Starts = append(j.Starts, late)
	}
	return j
}

// Tasks reads all tasks of a tag from the table. It returns the errors of [delaytask.Scheduler.List].
func Tasks(ctx context.Context, s *delaytask.Scheduler, tag string) ([]delaytask.TaskRow, error) {
	var all []delaytask.TaskRow
	filter := delaytask.Filter{Tag: tag, Limit: 1000}
	for {
		page, err := s.List(ctx, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tasks...)
		if filter.After = page.Next; page.Next == 0 {
			return all, nil
		}
	}
}

// Percentile takes the nearest rank, so that every figure is one that was measured. Of nothing it is 0.
func Percentile(durations []time.Duration, p float64) time.Duration {
	n := len(durations)
	if n == 0 {
		return 0
	}
	rank := int(math.Ceil(float64(n) * p / 100 * (1 - 1e-12))) // a float makes a little more than 40,959 of 99.9 % of 41,000
	return slices.Sorted(slices.Values(durations))[max(rank, 1)-1]
}

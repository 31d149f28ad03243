package bench

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
)

// judge compares what arrived with the tasks in the table, and adds the figures of that.
func (r *run) judge(ctx context.Context, d *database, tag, name string, seen *lateness.Starts) (lateness.Judgement, error) {
	tasks, err := r.tasks(ctx, d, tag)
	if err != nil {
		return lateness.Judgement{}, err
	}
	j := lateness.Judge(tasks, seen, 0)
	r.figures.addJudgement(name, j, j.Starts)
	return j, nil
}

// tasks reads all tasks of a tag from the table.
func (r *run) tasks(ctx context.Context, d *database, tag string) (tasks []delaytask.Task, err error) {
	err = r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		tasks, err = lateness.Tasks(ctx, s, tag)
		return err
	})
	return tasks, err
}

// addJudgement takes those starts whose lateness is of interest.
func (f *figures) addJudgement(name string, j lateness.Judgement, starts []time.Duration) {
	f.addPercentiles(name, starts, p50, p99, most)
	f.add(name+".early", float64(j.Early))
	f.add(name+".lost", float64(j.Lost))
	f.add(name+".duplicates", float64(j.Extra))
}

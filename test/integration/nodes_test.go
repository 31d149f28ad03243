package integration

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

func TestStopReleasesARunningTaskForAnotherScheduler(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		first := open(t, d, func(cfg *delaytask.Config) {
			quiet(cfg)
			cfg.StopGrace = 100 * time.Millisecond
		})
		p, running, _ := holding()
		serve(t, first, "t", p)
		id := save(t, first, "t", 0)
		receive(t, running, "task runs")
		second := open(t, d)
		taken := make(chan *processor.Task, 1)
		serve(t, second, "t", func(_ context.Context, task *processor.Task) error {
			taken <- task
			return nil
		})
		stopped := time.Now()
		if err := first.Stop(t.Context()); err == nil {
			t.Error("Stop says nothing of the task that it interrupted")
		}
		task := receive(t, taken, "another scheduler takes the task")
		within(t, 3*time.Second, stopped, time.Now(), "handover")
		if task.Attempt != 1 {
			t.Errorf("the other scheduler sees attempt %d, want 1", task.Attempt)
		}
		if row := reaches(t, second, id, delaytask.Completed); row.Attempt != 1 || row.CrashCount != 0 || len(row.Errors) != 0 {
			t.Errorf("the row became %+v", row)
		}
	})
}

func TestPauseAndResumeAreSeenByAnotherScheduler(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		here, there := open(t, d), open(t, d)
		p, ran := ids()
		serve(t, there, "t", p)
		serve(t, there, "other", nothing)
		const obey = 2 * time.Second
		if err := here.Pause(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		paused := time.Now()
		eventually(t, "a new task is left alone", func() bool {
			id := save(t, here, "t", 0)
			reaches(t, here, save(t, here, "other", 0), delaytask.Completed) // has been looked at later
			return get(t, here, id).Status == delaytask.Pending
		})
		within(t, obey, paused, time.Now(), "pause")
		for len(ran) > 0 {
			<-ran
		}
		waiting := save(t, here, "t", 0)
		if err := here.Resume(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		resumed := time.Now()
		reaches(t, here, waiting, delaytask.Completed)
		within(t, obey, resumed, time.Now(), "resume")
	})
}

// Nodes come and go all the time, all of one name; each leaves what it has to the others.
func TestNodesThatJoinAndLeaveLoseNothing(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		p, ran := ids()
		join := func() *delaytask.Scheduler {
			t.Helper()
			s := open(t, d, func(cfg *delaytask.Config) { cfg.NodeName = "twin" })
			serve(t, s, "t", p)
			return s
		}
		nodes := []*delaytask.Scheduler{join(), join()}
		const tasks = 300
		items := make([]delaytask.Item, tasks)
		for i := range items {
			items[i] = delaytask.Item{Tag: "t", Delay: rand.N(4 * time.Second)}
		}
		if _, err := nodes[0].SaveDelayTasks(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		runs := map[int64]int{}
		for n := range tasks {
			runs[receive(t, ran, "task runs")]++
			if n%40 == 0 {
				nodes = append(nodes, join())
				stop(t, nodes[0])
				nodes = nodes[1:]
			}
		}
		for _, s := range nodes {
			stop(t, s)
		}
		if len(runs) != tasks || len(ran) > 0 {
			t.Errorf("%d tasks ran in %d runs, want %d once", len(runs), tasks+len(ran), tasks)
		}
		const lost = "SELECT COUNT(*) FROM delay_task_message WHERE status <> 1 OR attempt <> 1 OR crash_count <> 0"
		if n := number(t, pool(t, d), lost); n != 0 {
			t.Errorf("%d tasks are not completed, or lost an attempt or a lease", n)
		}
	})
}

package integration

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

// Of three processes any one ends that runs a certain task, and another takes its place, as an orchestrator would see to.
func TestTaskThatEndsItsProcessAmongTwoHundredOnThreeProcesses(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		join := func() *child {
			c := spawn(t, d)
			c.say("serve", "t")
			c.hear("serving")
			return c
		}
		processes := []*child{join(), join(), join()}
		var good []int64
		for i := range 200 {
			good = append(good, save(t, s, "t", time.Second+time.Duration(i)*50*time.Millisecond, delaytask.WithTTR(childTTR)))
		}
		bad, err := s.SaveDelayTask(t.Context(), "t", "die", 2*time.Second, delaytask.WithTTR(childTTR))
		if err != nil {
			t.Fatal(err)
		}
		deaths := 0
		eventually(t, "the task that ends its process is failed", func() bool {
			for i, c := range processes {
				if c.died() {
					deaths++
					processes[i] = join()
				}
			}
			return get(t, s, bad).Status == delaytask.Failed
		})
		if task := get(t, s, bad); task.CrashCount != 5 || deaths > 5 { // a lease is also lost by who is too slow
			t.Errorf("%d processes died, crash count %d; want 5", deaths, task.CrashCount)
		}
		lost := 0
		for _, id := range good {
			task := reaches(t, s, id, delaytask.Completed)
			lost += task.CrashCount
			if task.Attempt != 1 {
				t.Errorf("a neighbour was completed by attempt %d", task.Attempt)
			}
		}
		t.Logf("%d processes died, neighbours lost %d leases", deaths, lost)
	})
}

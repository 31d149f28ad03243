//go:build unix

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// rescueWithin is the limit of a rescue: a lease, and the rescue's time.
const rescueWithin = childTTR + 5*time.Second

// A process that is stopped through its lease finds afterwards that another one has completed its task.
func TestTaskOfAProcessThatIsKilledOrFrozenIsRescued(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
			c, s := serving(t, d), open(t, d)
			id, err := s.SaveDelayTask(t.Context(), "t", "hold", 0, delaytask.WithTTR(childTTR))
			servertest.OK(t, err)
			c.Says("^run ")
			c.Signal(signal)
			gone := time.Now()
			p, ran := ids()
			serve(t, s, "t", p)
			servertest.Receive(t, ran, "task runs again")
			within(t, rescueWithin, gone, time.Now(), "rescue")
			task := reaches(t, s, id, delaytask.Completed)
			if task.Attempt != 1 || task.CrashCount != 1 || len(task.Errors) != 1 {
				t.Errorf("%+v, want attempt 1, crash count 1 and the loss", task)
			}
			if signal == syscall.SIGSTOP {
				c.Signal(syscall.SIGCONT)
				if said := c.Says("^ended (.*)$"); !strings.Contains(said, " lease ") {
					t.Errorf("the child's context ended because of %s, want the lost lease", said)
				}
				c.stop() // its results are written then
				if now := get(t, s, id); now.Version != task.Version || now.Executor != task.Executor {
					t.Errorf("the row was\n%+v and became\n%+v", task, now)
				}
			}
			servertest.Stop(t, s)
		}
	})
}

func TestTaskSavedByAProcessThatIsKilledAtOnceRuns(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		c := spawn(t, d)
		id := c.save("t", 500*time.Millisecond)
		c.Kill()
		if got := servertest.Receive(t, ran, "task runs"); got != id {
			t.Errorf("task %d ran, want %d", got, id)
		}
		task := reaches(t, s, id, delaytask.Completed)
		onTime(t, 6*time.Second, &task)
	})
}

// Any of three processes ends when it runs a certain task, and a new one replaces it, as by an orchestrator.
func TestTaskThatEndsItsProcessAmongTwoHundredOnThreeProcesses(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		processes := []child{serving(t, d), serving(t, d), serving(t, d)}
		var good []int64
		for i := range 200 {
			good = append(good, save(t, s, "t", time.Second+time.Duration(i)*50*time.Millisecond,
				delaytask.WithTTR(childTTR)))
		}
		bad, err := s.SaveDelayTask(t.Context(), "t", "die", 2*time.Second, delaytask.WithTTR(childTTR))
		servertest.OK(t, err)
		deaths := 0
		servertest.Eventually(t, "the task that ends its process is failed", func() bool {
			for i, c := range processes {
				if strings.Contains(c.Out.String(), "dies\n") {
					deaths++
					processes[i] = serving(t, d)
				}
			}
			return get(t, s, bad).Status == delaytask.Failed
		})
		if task := get(t, s, bad); task.CrashCount != 5 || deaths > 5 { // a slow process loses its lease as well
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

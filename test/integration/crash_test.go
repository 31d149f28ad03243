package integration

import (
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

// rescueWithin is the promise: a lease, and the rescue's time.
const rescueWithin = childTTR + 5*time.Second

func TestTaskOfAKilledProcessIsRescued(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		c := spawn(t, d)
		c.say("serve", "t")
		c.hear("serving")
		s := open(t, d)
		id, err := s.SaveDelayTask(t.Context(), "t", "hold", 0, delaytask.WithTTR(childTTR))
		if err != nil {
			t.Fatal(err)
		}
		if said := c.hear("run"); said[0] != strconv.FormatInt(id, 10) || said[1] != "1" {
			t.Fatalf("the child runs %v", said)
		}
		c.signal(syscall.SIGKILL)
		killed := time.Now()
		p, ran := ids()
		serve(t, s, "t", p)
		receive(t, ran, "task runs again")
		within(t, rescueWithin, killed, time.Now(), "rescue")
		task := reaches(t, s, id, delaytask.Completed)
		if task.Attempt != 1 || task.CrashCount != 1 || len(task.Errors) != 1 {
			t.Errorf("attempt %d, crash count %d, errors %+v; want 1, 1 and the loss", task.Attempt, task.CrashCount, task.Errors)
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
		c.signal(syscall.SIGKILL)
		if got := receive(t, ran, "task runs"); got != id {
			t.Errorf("task %d ran, want %d", got, id)
		}
		task := reaches(t, s, id, delaytask.Completed)
		onTime(t, 6*time.Second, &task)
	})
}

// A process that sleeps through its lease finds on waking that somebody else has completed its task.
func TestFrozenProcessLosesItsLeaseAndChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		c := spawn(t, d)
		c.say("serve", "t")
		c.hear("serving")
		s := open(t, d)
		id, err := s.SaveDelayTask(t.Context(), "t", "hold", 0, delaytask.WithTTR(childTTR))
		if err != nil {
			t.Fatal(err)
		}
		c.hear("run")
		c.signal(syscall.SIGSTOP)
		frozen := time.Now()
		p, ran := ids()
		serve(t, s, "t", p)
		receive(t, ran, "task runs again")
		within(t, rescueWithin, frozen, time.Now(), "rescue")
		before := reaches(t, s, id, delaytask.Completed)
		c.signal(syscall.SIGCONT)
		if said := c.hear("ended"); !slices.Contains(said, "lease") {
			t.Errorf("the child's context ended because of %v, want the lost lease", said)
		}
		c.stop() // what it has to write is written then
		if after := get(t, s, id); after.Version != before.Version || after.Executor != before.Executor || after.CrashCount != 1 {
			t.Errorf("the row was\n%+v and became\n%+v", before, after)
		}
	})
}

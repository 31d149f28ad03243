package main

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
)

// crashStory is what happened, as the table and the children told it.
type crashStory struct {
	first, second     *lateness.Starts // in the two processes
	killed, restarted time.Time
	atKill            []delaytask.Task // between the two
	atEnd, fresh      []delaytask.Task
}

func (c *crashStory) judge(t *trial) {
	n := t.count(crashTasks)
	completed, attempts := 0, map[int64]int{}
	for _, task := range c.atEnd {
		attempts[task.ID] = task.Attempt
		if task.Status == delaytask.Completed {
			completed++
		}
	}
	t.promise("tasks lost", fmt.Sprint(n-completed), "0", completed == n)

	var rescued, caught late
	var executing, overdue, repeated, burnt int
	for _, task := range c.atKill {
		at, again := c.second.First(task.ID)
		switch {
		case task.Status == delaytask.Completed && again:
			repeated++
		case task.Status == delaytask.Executing:
			executing++
			burnt += attempts[task.ID] - task.Attempt
			if again {
				rescued = append(rescued, at.Sub(c.killed))
			}
		case task.Status == delaytask.Pending && task.Due.Before(c.restarted):
			overdue++
			if again {
				caught = append(caught, at.Sub(c.restarted))
			}
		}
	}
	t.promise("completed tasks that ran again", fmt.Sprint(repeated), "0", repeated == 0)
	t.promise(fmt.Sprintf("killed while executing, lease %v: the last runs again", crashTTR),
		after(rescued, executing, "the kill"), rescueBound.String(), within(rescued, executing, rescueBound))
	t.promise("attempts that the kill used up", fmt.Sprint(burnt), "0", burnt == 0)
	t.promise("due while nobody ran: the last starts", after(caught, overdue, "the restart"),
		caughtBound.String(), within(caught, overdue, caughtBound))

	fresh := lateness.Judge(c.fresh, c.second, 0)
	t.promise("new ones meanwhile, due in 2 s: lateness p50 / p99 / max", late(fresh.Starts).String(), "max "+freshBound.String(),
		within(late(fresh.Starts), t.count(freshTasks), freshBound))
	early := lateness.Judge(c.atEnd, c.first, 0).Early + lateness.Judge(c.atEnd, c.second, 0).Early + fresh.Early
	t.promise("tasks that started early", fmt.Sprint(early), "0", early == 0)
}

// within reports whether all n are there and none is over the bound. A proof that met none of its cases shows nothing.
func within(l late, n int, bound time.Duration) bool {
	return n > 0 && len(l) == n && l.percentile(100) <= bound
}

func after(l late, n int, event string) string {
	return fmt.Sprintf("%s, the last %s after %s", of(len(l), n), seconds(l.percentile(100)), event)
}

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
)

const (
	outageFirstBound = 6 * time.Second // after the server answers again
	outageDoneBound  = time.Minute     // which says how fast machine and server are
)

// outageStory is what happened, as the table and the processors told it.
type outageStory struct {
	n                        int              // tasks that were saved before
	seen, again              *lateness.Starts // of these, and of those that were saved meanwhile
	accepted                 []int64          // meanwhile
	tries                    int              // that it took
	killed, begun, recovered time.Time        // begun: when the server was started again
	due, stubborn            []delaytask.Task // at the end
}

func (o *outageStory) judge(t *trial) {
	all := slices.Concat(o.due, o.stubborn)
	completed := map[int64]bool{}
	first, last := time.Time{}, o.recovered
	overdue, repeated := 0, 0
	for _, task := range all {
		completed[task.ID] = task.Status == delaytask.Completed
		if task.Finished.After(last) {
			last = task.Finished
		}
		if task.Expected.After(o.killed) && task.Expected.Before(o.recovered) {
			overdue++
		}
		at, _ := o.starts(task).First(task.ID)
		if at.After(o.begun) && (first.IsZero() || at.Before(first)) {
			first = at
		}
		if o.starts(task).Count(task.ID) > 1 {
			repeated++
		}
	}
	lost := o.n - len(o.due)
	for _, task := range o.due {
		if !completed[task.ID] {
			lost++
		}
	}
	for _, id := range o.accepted {
		if !completed[id] {
			lost++
		}
	}
	early := lateness.Judge(o.due, o.seen, 0).Early + lateness.Judge(o.stubborn, o.again, 0).Early
	away := t.away().Round(time.Second)
	t.add(fmt.Sprintf("due while the server was away for %v", away), fmt.Sprint(overdue), "", noted)
	t.add("saves that were tried meanwhile until they were accepted", fmt.Sprintf("%d, in %d tries", len(o.accepted), o.tries), "", noted)
	untilFirst, untilDone := max(first.Sub(o.recovered), 0), last.Sub(o.recovered)
	t.promise("the first start, after the server answers again", seconds(untilFirst), outageFirstBound.String(),
		!first.IsZero() && untilFirst <= outageFirstBound)
	t.promise("all is done, after the server answers again", seconds(untilDone), outageDoneBound.String(),
		lost == 0 && untilDone <= outageDoneBound)
	t.promise("tasks lost", of(lost, o.n+len(o.accepted)), "0", lost == 0)
	t.promise("tasks that started early", fmt.Sprint(early), "0", early == 0)
	twice := len(o.stubborn) - len(o.accepted)
	t.promise("saved once and stored twice", fmt.Sprint(max(twice, 0)), "0", twice <= 0)
	t.add("tasks that ran again, because their completion was lost", fmt.Sprint(repeated), "", noted)
}

func (o *outageStory) starts(task delaytask.Task) *lateness.Starts {
	if task.Tag == outageTag {
		return o.seen
	}
	return o.again
}

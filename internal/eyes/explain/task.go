// Package explain words why a task has not run or was late, and what became of a tick of a schedule. It knows no
// database: it is told what was read.
//
//   - task.go: tasks.
//   - schedule.go: schedules and their ticks.
package explain

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// Ended explains a task that has ended. quarantine is how many executors a task may lose.
func Ended(t *delaytask.TaskRow, quarantine int) (report.Reason, sentence.Text) {
	reason, text := ending(t, quarantine)
	return reason, append(sentence.Text{text}, late(t)...)
}

func ending(t *delaytask.TaskRow, quarantine int) (report.Reason, sentence.Sentence) {
	switch {
	case t.Status == delaytask.Completed:
		return report.ReasonFinished, sentence.Of(sentence.TaskCompleted, t.Finished, t.Attempt)
	case t.Status == delaytask.Cancelled:
		return report.ReasonFinished, sentence.Of(sentence.TaskCancelled, t.Finished)
	case t.CrashCount >= quarantine:
		return report.ReasonQuarantined, sentence.Of(sentence.TaskQuarantined, t.Finished, t.CrashCount)
	default:
		return report.ReasonFinished, sentence.Of(sentence.TaskFailed, t.Finished, t.Attempt, lastError(t))
	}
}

// lastError is the last error of a task as a parameter of a sentence.
func lastError(t *delaytask.TaskRow) sentence.Quote {
	return sentence.Quote(row.Shorten(t.LastError(), 200))
}

// late returns a sentence about a late start, or none.
func late(t *delaytask.TaskRow) sentence.Text {
	why := sentence.Late + sentence.Code(t.Late)
	if _, known := sentence.English[why]; !known {
		return nil
	}
	return sentence.Text{sentence.Of(sentence.TaskLate, t.Lateness().Round(time.Millisecond), sentence.Of(why))}
}

// Executing explains a task that executes. ahead says that its process is gone and its lease longer than its TTR.
func Executing(t *delaytask.TaskRow, now time.Time, ahead bool) (report.Reason, sentence.Text) {
	reason, text := report.ReasonLeased, sentence.Of(sentence.TaskLeased, t.Attempt, t.Executor, t.Due)
	switch {
	case ahead:
		reason, text = report.ReasonLeaseAhead, sentence.Of(sentence.TaskLeaseAhead, t.Executor, t.Due)
	case !now.Before(t.Due):
		reason, text = report.ReasonLeaseOver, sentence.Of(sentence.TaskLeaseOver, t.Executor, t.Due)
	}
	return reason, append(sentence.Text{text}, late(t)...)
}

// Around is what was read beside a pending task.
type Around struct {
	Now                    time.Time
	Paused, Served, Locked bool // its tag; its tag, by a live process; its row
	TagLocked              bool // a range of its tag's rows, as this process has met it
}

// Pending explains a pending task. It returns the first reason, and a text that also names later ones.
func Pending(t *delaytask.TaskRow, a Around) (report.Reason, sentence.Text) {
	var reasons []report.Reason
	var text sentence.Text
	hurdle := func(met bool, reason report.Reason, code sentence.Code, args ...any) {
		if met {
			reasons, text = append(reasons, reason), append(text, sentence.Of(code, args...))
		}
	}
	if t.Due.IsZero() {
		// A plain INSERT leaves it out; the look-ahead of a node that serves the tag fills it in.
		t.Due = t.Expected
	}
	early := a.Now.Before(t.Due)
	retry := early && t.Attempt > 0
	hurdle(early && !retry, report.ReasonNotDue, sentence.TaskNotDue, t.Due)
	hurdle(retry, report.ReasonRetry, sentence.TaskRetry, t.Attempt, lastError(t), t.Due)
	hurdle(a.Paused, report.ReasonPaused, sentence.TaskPaused, t.Tag)
	hurdle(!a.Served, report.ReasonUnserved, sentence.TaskUnserved, t.Tag)
	hurdle(a.Locked, report.ReasonLocked, sentence.TaskLocked)
	hurdle(a.TagLocked && !a.Locked && !early, report.ReasonLocked, sentence.TaskTagLocked, t.Tag)
	hurdle(len(reasons) == 0, report.ReasonWaiting, sentence.TaskWaiting, t.Due)
	return reasons[0], text
}

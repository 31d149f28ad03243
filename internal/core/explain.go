package core

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// Explain also returns the sentences of the Text, to word it in another language.
func (c *Core) Explain(ctx context.Context, ref delaytask.Ref) (report.Explanation, sentence.Text, error) {
	task, err := c.Get(ctx, ref)
	if err != nil {
		return report.Explanation{}, nil, err
	}
	task.Body = nil
	reason, text, err := c.explain(ctx, &task)
	if err != nil {
		return report.Explanation{}, nil, fmt.Errorf("explain %v: %w", ref, err)
	}
	return report.Explanation{Task: task, Reason: reason, Text: text.English()}, text, nil
}

func (c *Core) explain(ctx context.Context, t *delaytask.TaskRow) (report.Reason, sentence.Text, error) {
	if t.Broken != "" {
		return report.ReasonBroken, sentence.Text{sentence.Of(sentence.TaskBroken, sentence.Quote(t.Broken))}, nil
	}
	if t.Status.Final() {
		reason, text := c.explainFinal(t)
		return reason, append(sentence.Text{text}, explainLate(t)...), nil
	}
	now, err := c.clusterState(ctx)
	if err != nil {
		return "", nil, err
	}
	if t.Status == delaytask.Executing {
		reason, text := explainLease(t, now.now.Std())
		return reason, append(sentence.Text{text}, explainLate(t)...), nil
	}
	locked, err := c.store.Locked(ctx, []int64{t.ID})
	refused := row.ClassOf(err) == row.ClassNotApplied
	if err != nil && !refused {
		return "", nil, err
	}
	reason, text := explainPending(t, now, slices.Contains(locked, t.ID))
	if refused { // the rest was read
		text = append(text, sentence.Of(sentence.TaskLockUnknown))
	}
	return reason, text, nil
}

func (c *Core) explainFinal(t *delaytask.TaskRow) (report.Reason, sentence.Sentence) {
	switch {
	case t.Status == delaytask.Completed:
		return report.ReasonFinished, sentence.Of(sentence.TaskCompleted, t.Finished, t.Attempt)
	case t.Status == delaytask.Cancelled:
		return report.ReasonFinished, sentence.Of(sentence.TaskCancelled, t.Finished)
	case t.CrashCount >= c.quarantine:
		return report.ReasonQuarantined, sentence.Of(sentence.TaskQuarantined, t.Finished, t.CrashCount)
	default:
		return report.ReasonFinished, sentence.Of(sentence.TaskFailed, t.Finished, t.Attempt, lastError(t))
	}
}

// lastError is the last error of a task as a parameter of a sentence.
func lastError(t *delaytask.TaskRow) sentence.Quote {
	return sentence.Quote(row.Shorten(t.LastError(), 200))
}

// explainLate returns a sentence about a late start, or none.
func explainLate(t *delaytask.TaskRow) sentence.Text {
	why := sentence.Late + sentence.Code(t.Late)
	if _, late := sentence.English[why]; !late {
		return nil
	}
	return sentence.Text{sentence.Of(sentence.TaskLate, t.Lateness().Round(time.Millisecond), sentence.Of(why))}
}

func explainLease(t *delaytask.TaskRow, now time.Time) (report.Reason, sentence.Sentence) {
	if !now.Before(t.Due) {
		return report.ReasonLeaseOver, sentence.Of(sentence.TaskLeaseOver, t.Executor, t.Due)
	}
	return report.ReasonLeased, sentence.Of(sentence.TaskLeased, t.Attempt, t.Executor, t.Due)
}

// explainPending returns the first reason, and a text that also names later ones.
func explainPending(t *delaytask.TaskRow, now clusterState, locked bool) (report.Reason, sentence.Text) {
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
	early := now.now.Std().Before(t.Due)
	retry := early && t.Attempt > 0
	hurdle(early && !retry, report.ReasonNotDue, sentence.TaskNotDue, t.Due)
	hurdle(retry, report.ReasonRetry, sentence.TaskRetry, t.Attempt, lastError(t), t.Due)
	hurdle(now.paused[t.Tag], report.ReasonPaused, sentence.TaskPaused, t.Tag)
	hurdle(!now.served[t.Tag], report.ReasonUnserved, sentence.TaskUnserved, t.Tag)
	hurdle(locked, report.ReasonLocked, sentence.TaskLocked)
	hurdle(len(reasons) == 0, report.ReasonWaiting, sentence.TaskWaiting, t.Due)
	return reasons[0], text
}

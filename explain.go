package delaytask

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sentence"
	"github.com/delaytask/delaytask/processor"
)

// Reason says, for programs, why a task is not running now.
type Reason = processor.Reason

// The reasons that Explain gives.
const (
	ReasonNotDue      = processor.ReasonNotDue
	ReasonRetry       = processor.ReasonRetry // an attempt failed and the next one is not due
	ReasonPaused      = processor.ReasonPaused
	ReasonUnserved    = processor.ReasonUnserved  // no live node has a processor for the tag
	ReasonLocked      = processor.ReasonLocked    // another transaction holds the row
	ReasonWaiting     = processor.ReasonWaiting   // due, and waiting for a free slot
	ReasonLeased      = processor.ReasonLeased    // it is executing
	ReasonLeaseOver   = processor.ReasonLeaseOver // its executor is gone; a rescue will end the lease
	ReasonFinished    = processor.ReasonFinished
	ReasonQuarantined = processor.ReasonQuarantined // failed because it lost its executor too often
	ReasonBroken      = processor.ReasonBroken      // its row cannot be read
)

// LateReason says, for programs, why a task started over 100 ms late.
type LateReason = processor.LateReason

// The reasons for a late start.
const (
	LateSlot     = processor.LateSlot     // it waited for a free slot of its process, or for a caller of Pop
	LateTagLimit = processor.LateTagLimit // it waited for a slot of its tag while the process had others
	LateRetry    = processor.LateRetry    // an earlier attempt ended before it had started the task
	LatePaused   = processor.LatePaused   // its tag was paused
	LateUnserved = processor.LateUnserved // no process served its tag
	LateDatabase = processor.LateDatabase // the database did not answer, refused claims, or was slow
	LateClock    = processor.LateClock    // starts were held until the database's clock was known again
	LateLocked   = processor.LateLocked   // another transaction had locked its row
	LateFound    = processor.LateFound    // no process had a timer for it; a read of the table found it overdue
	LateReceiver = processor.LateReceiver // its receiver took long to accept it
	LateProcess  = processor.LateProcess  // the process itself was slow: it was suspended, or had no CPU time
)

// Explanation says why a task has not run, or what has become of it.
type Explanation = processor.Explanation

// Explain returns why a task has not run, and why one that has run was late. It returns [ErrNotFound] when there is no
// such task.
func (s *Scheduler) Explain(ctx context.Context, ref Ref) (Explanation, error) {
	e, text, err := s.explainRef(ctx, ref)
	e.Text = text.English()
	return e, err
}

// explainRef is Explain with the sentences of its Text.
func (s *Scheduler) explainRef(ctx context.Context, ref Ref) (Explanation, sentence.Text, error) {
	task, err := s.Get(ctx, ref)
	if err != nil {
		return Explanation{}, nil, err
	}
	task.Body = nil
	reason, text, err := s.explain(ctx, &task)
	if err != nil {
		return Explanation{}, nil, fmt.Errorf("explain %v: %w", ref, err)
	}
	return Explanation{Task: task, Reason: reason}, text, nil
}

func (s *Scheduler) explain(ctx context.Context, t *TaskRow) (Reason, sentence.Text, error) {
	if t.Broken != "" {
		return ReasonBroken, sentence.Text{sentence.Of(sentence.TaskBroken, sentence.Quote(t.Broken))}, nil
	}
	if t.Status.Final() {
		reason, text := s.explainFinal(t)
		return reason, append(sentence.Text{text}, explainLate(t)...), nil
	}
	now, err := s.clusterState(ctx)
	if err != nil {
		return "", nil, err
	}
	if t.Status == Executing {
		reason, text := explainLease(t, now.now.Std())
		return reason, append(sentence.Text{text}, explainLate(t)...), nil
	}
	locked, err := s.store.Locked(ctx, []int64{t.ID})
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

func (s *Scheduler) explainFinal(t *TaskRow) (Reason, sentence.Sentence) {
	switch {
	case t.Status == Completed:
		return ReasonFinished, sentence.Of(sentence.TaskCompleted, t.Finished, t.Attempt)
	case t.Status == Cancelled:
		return ReasonFinished, sentence.Of(sentence.TaskCancelled, t.Finished)
	case t.CrashCount >= s.quarantine:
		return ReasonQuarantined, sentence.Of(sentence.TaskQuarantined, t.Finished, t.CrashCount)
	default:
		return ReasonFinished, sentence.Of(sentence.TaskFailed, t.Finished, t.Attempt, lastError(t))
	}
}

// lastError is the last error of a task as a parameter of a sentence.
func lastError(t *TaskRow) sentence.Quote { return sentence.Quote(row.Shorten(t.LastError(), 200)) }

// explainLate returns a sentence about a late start, or none.
func explainLate(t *TaskRow) sentence.Text {
	why := sentence.Late + sentence.Code(t.Late)
	if _, late := sentence.English[why]; !late {
		return nil
	}
	return sentence.Text{sentence.Of(sentence.TaskLate, t.Lateness().Round(time.Millisecond), sentence.Of(why))}
}

func explainLease(t *TaskRow, now time.Time) (Reason, sentence.Sentence) {
	if !now.Before(t.Due) {
		return ReasonLeaseOver, sentence.Of(sentence.TaskLeaseOver, t.Executor, t.Due)
	}
	return ReasonLeased, sentence.Of(sentence.TaskLeased, t.Attempt, t.Executor, t.Due)
}

// explainPending returns the first reason, and a text that also names later ones.
func explainPending(t *TaskRow, now clusterState, locked bool) (Reason, sentence.Text) {
	var reasons []Reason
	var text sentence.Text
	hurdle := func(met bool, reason Reason, code sentence.Code, args ...any) {
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
	hurdle(early && !retry, ReasonNotDue, sentence.TaskNotDue, t.Due)
	hurdle(retry, ReasonRetry, sentence.TaskRetry, t.Attempt, lastError(t), t.Due)
	hurdle(now.paused[t.Tag], ReasonPaused, sentence.TaskPaused, t.Tag)
	hurdle(!now.served[t.Tag], ReasonUnserved, sentence.TaskUnserved, t.Tag)
	hurdle(locked, ReasonLocked, sentence.TaskLocked)
	hurdle(len(reasons) == 0, ReasonWaiting, sentence.TaskWaiting, t.Due)
	return reasons[0], text
}

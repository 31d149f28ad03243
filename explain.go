package delaytask

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
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
	task, err := s.Get(ctx, ref)
	if err != nil {
		return Explanation{}, err
	}
	task.Body = nil
	e := Explanation{Task: task}
	if e.Reason, e.Text, err = s.explain(ctx, &task); err != nil {
		return Explanation{}, fmt.Errorf("explain %v: %w", ref, err)
	}
	return e, nil
}

func (s *Scheduler) explain(ctx context.Context, t *TaskRow) (Reason, string, error) {
	if t.Broken != "" {
		return ReasonBroken, "Its row cannot be read: " + t.Broken + ".", nil
	}
	if t.Status.Final() {
		reason, text := s.explainFinal(t)
		return reason, text + explainLate(t), nil
	}
	now, err := s.clusterState(ctx)
	if err != nil {
		return "", "", err
	}
	if t.Status == Executing {
		reason, text := explainLease(t, now.now.Std())
		return reason, text + explainLate(t), nil
	}
	locked, err := s.store.Locked(ctx, []int64{t.ID})
	if err != nil {
		return "", "", err
	}
	reason, text := explainPending(t, now, slices.Contains(locked, t.ID))
	return reason, text, nil
}

func (s *Scheduler) explainFinal(t *TaskRow) (Reason, string) {
	at := moment(t.Finished)
	switch {
	case t.Status == Completed:
		return ReasonFinished, fmt.Sprintf("It completed at %s, in attempt %d.", at, t.Attempt)
	case t.Status == Cancelled:
		return ReasonFinished, fmt.Sprintf("It was cancelled at %s.", at)
	case t.CrashCount >= s.quarantine:
		return ReasonQuarantined, fmt.Sprintf(
			"It was quarantined at %s: its executor died or went silent %d times while it "+
				"ran. Retry it when the cause is repaired.", at, t.CrashCount)
	default:
		return ReasonFinished, fmt.Sprintf("It failed for good at %s, in attempt %d: %s", at, t.Attempt,
			row.Clip(t.LastError(), 200))
	}
}

var lateTexts = map[LateReason]string{
	LateSlot: "it waited for a free slot of its process, or for a caller of Pop. " +
		"Raise the concurrency or run more processes",
	LateTagLimit: "it waited for a slot of its tag. Raise the concurrency of the tag",
	LateRetry:    "an earlier attempt ended before it had started the task",
	LatePaused:   "its tag was paused",
	LateUnserved: "no process served its tag",
	LateDatabase: "the database did not answer, refused claims, or was slow. See delaytask doctor",
	LateClock:    "starts were held until the database's clock was known again, as after a failover",
	LateLocked:   "another transaction had locked its row",
	LateFound: "no process had a timer for it, so a read of the table found it overdue. It was saved by a process " +
		"without processors, its transaction was committed late, or its node died or was overloaded",
	LateReceiver: "its receiver took long to accept it",
	LateProcess:  "the process that ran it was suspended or had no CPU time",
}

// explainLate returns a sentence about a late start, with a space before it, or "".
func explainLate(t *TaskRow) string {
	text, late := lateTexts[t.Late]
	if !late {
		return ""
	}
	return fmt.Sprintf(" It started %v late: %s.", t.Lateness().Round(time.Millisecond), text)
}

func explainLease(t *TaskRow, now time.Time) (Reason, string) {
	if !now.Before(t.Due) {
		return ReasonLeaseOver, fmt.Sprintf(
			"The lease of %s ended at %s without an answer; a rescue takes it back within "+
				"seconds, if a node is alive.", t.Executor, moment(t.Due))
	}
	return ReasonLeased, fmt.Sprintf("Attempt %d is leased by %s until %s.", t.Attempt, t.Executor, moment(t.Due))
}

// explainPending returns the first reason, and a text that also names later ones.
func explainPending(t *TaskRow, now clusterState, locked bool) (Reason, string) {
	var reasons []Reason
	var text string
	hurdle := func(met bool, reason Reason, sentence string) {
		if !met {
			return
		}
		if text != "" {
			text += " "
		}
		reasons, text = append(reasons, reason), text+sentence
	}
	if t.Due.IsZero() {
		// A plain INSERT leaves it out; the look-ahead of a node that serves the tag fills it in.
		t.Due = t.Expected
	}
	early := now.now.Std().Before(t.Due)
	retry := early && t.Attempt > 0
	hurdle(early && !retry, ReasonNotDue, fmt.Sprintf("It is due at %s.", moment(t.Due)))
	hurdle(retry, ReasonRetry, fmt.Sprintf("Attempt %d failed (%s); the next one is due at %s.",
		t.Attempt, row.Clip(t.LastError(), 200), moment(t.Due)))
	hurdle(now.paused[t.Tag], ReasonPaused, fmt.Sprintf("The tag %s is paused.", t.Tag))
	hurdle(!now.served[t.Tag], ReasonUnserved, fmt.Sprintf("No live node serves the tag %s.", t.Tag))
	hurdle(locked, ReasonLocked, "Its row is locked by another transaction.")
	hurdle(len(reasons) == 0, ReasonWaiting,
		fmt.Sprintf("It has been due since %s and waits for a free slot.", moment(t.Due)))
	return reasons[0], text
}

// moment renders a time as the delaytask command shows all times.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

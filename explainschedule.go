package delaytask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/planner"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedule"
	"github.com/delaytask/delaytask/processor"
)

// ScheduleExplanation says how a schedule stands, or what became of one of its ticks.
type ScheduleExplanation = processor.ScheduleExplanation

// ExplainSchedule returns what became of a tick of a schedule, and why: "why did yesterday's 02:30 not run". With a
// zero tick it returns how the schedule stands: why it does not run, and what it waits for. It returns
// [ErrScheduleNotFound].
func (s *Scheduler) ExplainSchedule(ctx context.Context, name string, tick time.Time) (ScheduleExplanation, error) {
	st, err := s.stateOf(ctx, name)
	if errors.Is(err, planner.ErrUnreadable) {
		return s.explainUnreadable(ctx, name, err)
	}
	if err != nil {
		return ScheduleExplanation{}, err
	}
	if !tick.IsZero() {
		return s.explainTick(ctx, &st, tick)
	}
	e := ScheduleExplanation{Schedule: scheduleOf(&st.Schedule), Text: s.standing(&st)}
	if n := len(st.Open); n > 0 && !st.Open[n-1].Gone {
		e.Text, err = s.withTask(ctx, e.Text, st.Open[n-1].Task.ID)
	}
	return e, err
}

// explainUnreadable says why this process does not decide about a schedule.
func (s *Scheduler) explainUnreadable(ctx context.Context, name string, why error) (ScheduleExplanation, error) {
	stored, err := s.GetSchedule(ctx, name)
	if err != nil {
		return ScheduleExplanation{}, err
	}
	return ScheduleExplanation{Schedule: stored, Text: fmt.Sprintf("It cannot be explained here: %v. Bring this "+
		"machine's zone data or this program up to date.", why)}, nil
}

func (s *Scheduler) stateOf(ctx context.Context, name string) (schedule.State, error) {
	if err := s.enter(ctx); err != nil {
		return schedule.State{}, err
	}
	st, err := s.engine.Schedules().State(ctx, name)
	if err != nil {
		return st, fmt.Errorf("explain schedule %s: %w", name, err)
	}
	return st, nil
}

// standing is a sentence or two on the state of a schedule.
func (s *Scheduler) standing(st *schedule.State) string {
	of := scheduleOf(&st.Schedule)
	switch of.State {
	case processor.SchedulePaused:
		return fmt.Sprintf("It is paused since %s: %s. Ticks of the pause do not run. After resume it goes on with "+
			"the next one.", moment(of.Updated), orUnknown(of.Reason))
	case processor.ScheduleEnded:
		return fmt.Sprintf("It has ended: %s.", orUnknown(of.Reason))
	case processor.ScheduleRetired:
		return fmt.Sprintf("It is retired since %s: no live program of %s declares it. It comes back with its state "+
			"when one does within 30 days.", moment(of.Updated), of.Owner)
	}
	text := "No tick is to come, and it ends with its run."
	if !of.NextTick.IsZero() {
		text = fmt.Sprintf("Its next tick is %s", moment(of.NextTick))
		if of.NextDue != of.NextTick {
			text += fmt.Sprintf(", which its jitter puts off until %s", moment(of.NextDue))
		}
		text += "."
	}
	if behind := schedule.Behind(st); behind > 0 {
		text += fmt.Sprintf(" %d ticks are due and not decided: no started process can decide about it, or the "+
			"database refuses the decision. The log of the processes says why.", behind)
	}
	if of.Failures > 0 {
		text += fmt.Sprintf(" Its last %d runs have failed.", of.Failures)
	}
	return text
}

func orUnknown(reason string) string {
	if reason == "" {
		return "no reason was given"
	}
	return reason
}

// withTask adds how a run stands.
func (s *Scheduler) withTask(ctx context.Context, text string, id int64) (string, error) {
	run, err := s.Explain(ctx, ID(id))
	if err != nil {
		return text, err
	}
	return fmt.Sprintf("%s Its run is task %d. %s", text, id, run.Text), nil
}

func (s *Scheduler) explainTick(
	ctx context.Context, st *schedule.State, tick time.Time,
) (ScheduleExplanation, error) {
	e := ScheduleExplanation{Schedule: scheduleOf(&st.Schedule), Tick: tick.UTC()}
	run, there, err := s.historyOf(ctx, st.Schedule.Name, row.At(tick))
	switch {
	case err != nil:
		return e, err
	case there:
		e.History = tickOf(&run)
		e.Text = outcomeText(&e.History)
		if run.Outcome == row.OutcomeOpen {
			e.Text, err = s.withTask(ctx, e.Text, run.TaskID)
		}
	default:
		e.Text = withoutHistory(st, row.At(tick))
	}
	return e, err
}

// historyOf returns the row of the history that is about a tick.
func (s *Scheduler) historyOf(ctx context.Context, name string, tick row.Time) (row.ScheduleRun, bool, error) {
	// Between the tick and a range that holds it there may be runs that were triggered.
	const among = 100
	after := tick.Add(time.Millisecond)
	runs, err := s.engine.Schedules().Runs(ctx, name, after, among)
	if err != nil {
		return row.ScheduleRun{}, false, fmt.Errorf("explain schedule %s: %w", name, err)
	}
	i := slices.IndexFunc(runs, func(r row.ScheduleRun) bool { return r.Tick <= tick && tick <= r.Until })
	if i < 0 { // the time of a trigger is shown to the millisecond
		i = slices.IndexFunc(runs, func(r row.ScheduleRun) bool { return tick <= r.Tick && r.Tick < after })
	}
	if i < 0 {
		return row.ScheduleRun{}, false, nil
	}
	return runs[i], true, nil
}

func outcomeText(t *ScheduleTick) string {
	among := ""
	if t.Ticks > 1 {
		among = fmt.Sprintf(", as one of %d from %s to %s", t.Ticks, moment(t.Tick), moment(t.Until))
	}
	switch t.Outcome {
	case processor.OutcomeOpen:
		return "Its run has not ended."
	case processor.OutcomeCompleted:
		return fmt.Sprintf("It ran as task %d, from %s to %s.", t.TaskID, moment(t.Start), moment(t.Finish))
	case processor.OutcomeSkipped, processor.OutcomeMissed:
		return fmt.Sprintf("It did not run%s: %s.", among, orUnknown(t.Note))
	case processor.OutcomeUnknown:
		return fmt.Sprintf("It was planted as task %d, which was deleted before its end was seen.", t.TaskID)
	default:
		return fmt.Sprintf("Its run, task %d, %s at %s: %s.", t.TaskID, t.Outcome, moment(t.Finish), orUnknown(t.Note))
	}
}

// withoutHistory says why the history has nothing about a moment.
func withoutHistory(st *schedule.State, tick row.Time) string {
	s := &st.Schedule
	before, after := row.At(st.Spec.Prev(tick.Std())), row.At(st.Spec.Next((tick - 1).Std()))
	switch {
	case after != tick:
		text := "The definition of today names no tick at this moment"
		if !before.IsZero() {
			text += ", but one at " + moment(before.Std())
		}
		if !after.IsZero() {
			text += " and one at " + moment(after.Std())
		}
		return text + ". delaytask schedule preview shows what a clock change moves."
	case tick < s.Created:
		return fmt.Sprintf("The schedule was created at %s, after this tick.", moment(s.Created.Std()))
	case !s.Next.IsZero() && tick >= s.Next:
		return "It is to come, or waits: nothing is decided about it."
	case s.State != row.ScheduleActive:
		return fmt.Sprintf("The schedule was %s by then, and is: %s.", s.State, orUnknown(s.Reason))
	default:
		return fmt.Sprintf("The history does not hold it: the schedule was paused or had another definition then, or "+
			"the row was deleted, because the history keeps %d rows.", s.KeepRuns)
	}
}

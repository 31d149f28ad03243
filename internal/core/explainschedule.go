package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/report"
)

// ExplainSchedule also returns the sentences of the Text, to word it in another language.
func (c *Core) ExplainSchedule(
	ctx context.Context, name string, tick time.Time,
) (e report.ScheduleExplanation, text sentence.Text, err error) {
	if e, text, err = c.explainSchedule(ctx, name, tick); err == nil {
		e.Text = text.English()
	}
	return e, text, err
}

func (c *Core) explainSchedule(
	ctx context.Context, name string, tick time.Time,
) (report.ScheduleExplanation, sentence.Text, error) {
	st, err := c.stateOf(ctx, name)
	if errors.Is(err, plan.ErrUnreadable) {
		return c.explainUnreadable(ctx, name, err)
	}
	if err != nil {
		return report.ScheduleExplanation{}, nil, err
	}
	if !tick.IsZero() {
		return c.explainTick(ctx, &st, tick)
	}
	e, text := report.ScheduleExplanation{Schedule: scheduleOf(&st.Schedule)}, c.standing(&st)
	if n := len(st.Open); n > 0 && !st.Open[n-1].Gone {
		text, err = c.withTask(ctx, text, st.Open[n-1].Task.ID)
	}
	return e, text, err
}

// explainUnreadable says why this process does not decide about a schedule.
func (c *Core) explainUnreadable(
	ctx context.Context, name string, why error,
) (report.ScheduleExplanation, sentence.Text, error) {
	stored, err := c.GetSchedule(ctx, name)
	if err != nil {
		return report.ScheduleExplanation{}, nil, err
	}
	return report.ScheduleExplanation{Schedule: stored},
		sentence.Text{sentence.Of(sentence.ScheduleUnreadable, sentence.Quote(why.Error()))}, nil
}

func (c *Core) stateOf(ctx context.Context, name string) (decide.State, error) {
	if err := c.enter(ctx); err != nil {
		return decide.State{}, err
	}
	st, err := c.engine.Schedules().State(ctx, name)
	if err != nil {
		return st, fmt.Errorf("explain schedule %s: %w", name, err)
	}
	return st, nil
}

// standing is a sentence or two on the state of a schedule.
func (c *Core) standing(st *decide.State) sentence.Text {
	of := scheduleOf(&st.Schedule)
	switch of.State {
	case delaytask.SchedulePaused:
		return sentence.Text{sentence.Of(sentence.SchedulePaused, of.Updated, orUnknown(of.Reason))}
	case delaytask.ScheduleEnded:
		return sentence.Text{sentence.Of(sentence.ScheduleEnded, orUnknown(of.Reason))}
	case delaytask.ScheduleRetired:
		return sentence.Text{sentence.Of(sentence.ScheduleRetired, of.Updated, of.Owner)}
	}
	var text sentence.Text
	switch {
	case of.NextTick.IsZero():
		text = append(text, sentence.Of(sentence.ScheduleLast))
	case of.NextDue.Equal(of.NextTick):
		text = append(text, sentence.Of(sentence.ScheduleNext, of.NextTick))
	default:
		text = append(text, sentence.Of(sentence.ScheduleJittered, of.NextTick, of.NextDue))
	}
	if behind := decide.Behind(st); behind > 0 {
		text = append(text, sentence.Of(sentence.ScheduleBehind, behind))
	}
	if of.Failures > 0 {
		text = append(text, sentence.Of(sentence.ScheduleFailures, of.Failures))
	}
	return text
}

// orUnknown returns a stored reason as a parameter of a sentence.
func orUnknown(reason string) any {
	if reason == "" {
		return sentence.Of(sentence.NoReason)
	}
	return sentence.Quote(reason)
}

// withTask adds how a run stands.
func (c *Core) withTask(ctx context.Context, text sentence.Text, id int64) (sentence.Text, error) {
	_, run, err := c.Explain(ctx, delaytask.ID(id))
	if err != nil {
		return text, err
	}
	return append(append(text, sentence.Of(sentence.ScheduleRun, sentence.ID(id))), run...), nil
}

func (c *Core) explainTick(
	ctx context.Context, st *decide.State, tick time.Time,
) (report.ScheduleExplanation, sentence.Text, error) {
	e := report.ScheduleExplanation{Schedule: scheduleOf(&st.Schedule), Tick: tick.UTC()}
	run, there, err := c.historyOf(ctx, st.Schedule.Name, row.At(tick))
	if err != nil {
		return e, nil, err
	}
	if !there {
		return e, sentence.Text{withoutHistory(st, row.At(tick))}, nil
	}
	e.History = tickOf(&run)
	text := sentence.Text{outcomeText(&e.History)}
	if run.Outcome == row.OutcomeOpen {
		text, err = c.withTask(ctx, text, run.TaskID)
	}
	return e, text, err
}

// historyOf returns the row of the history that is about a tick.
func (c *Core) historyOf(ctx context.Context, name string, tick row.Time) (row.ScheduleRun, bool, error) {
	// Between the tick and a range that holds it there may be runs that were triggered.
	const among = 100
	after := min(tick.Add(time.Millisecond), row.MaxTime)
	runs, err := c.engine.Schedules().Runs(ctx, name, after, among)
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

func outcomeText(t *delaytask.ScheduleTick) sentence.Sentence {
	task := sentence.ID(t.TaskID)
	switch t.Outcome {
	case delaytask.OutcomeOpen:
		return sentence.Of(sentence.TickOpen)
	case delaytask.OutcomeCompleted:
		return sentence.Of(sentence.TickCompleted, task, t.Start, t.Finish)
	case delaytask.OutcomeSkipped, delaytask.OutcomeMissed:
		if t.Ticks > 1 {
			return sentence.Of(sentence.TicksNotRun, t.Ticks, t.Tick, t.Until, orUnknown(t.Note))
		}
		return sentence.Of(sentence.TickNotRun, orUnknown(t.Note))
	case delaytask.OutcomeUnknown:
		return sentence.Of(sentence.TickUnknown, task)
	case delaytask.OutcomeFailed:
		return sentence.Of(sentence.TickFailed, task, t.Finish, orUnknown(t.Note))
	default:
		return sentence.Of(sentence.TickCancelled, task, t.Finish, orUnknown(t.Note))
	}
}

// withoutHistory says why the history has nothing about a moment.
func withoutHistory(st *decide.State, tick row.Time) sentence.Sentence {
	s := &st.Schedule
	before, after := row.At(st.Spec.Prev(tick.Std())), row.At(st.Spec.Next((tick - 1).Std()))
	switch {
	case after != tick:
		return noTick(before, after)
	case tick < s.Created:
		return sentence.Of(sentence.TickTooEarly, s.Created.Std())
	case !s.Next.IsZero() && tick >= s.Next:
		return sentence.Of(sentence.TickToCome)
	case s.State != row.ScheduleActive:
		state := sentence.Of(sentence.State + sentence.Code(s.State.String()))
		return sentence.Of(sentence.TickStopped, state, orUnknown(s.Reason))
	default:
		return sentence.Of(sentence.TickForgotten, s.KeepRuns)
	}
}

// noTick says that a schedule has no tick at a moment, but before or after it.
func noTick(before, after row.Time) sentence.Sentence {
	switch {
	case before.IsZero() && after.IsZero():
		return sentence.Of(sentence.TickNone)
	case after.IsZero():
		return sentence.Of(sentence.TickNoneBefore, before.Std())
	case before.IsZero():
		return sentence.Of(sentence.TickNoneAfter, after.Std())
	default:
		return sentence.Of(sentence.TickNoneBetween, before.Std(), after.Std())
	}
}

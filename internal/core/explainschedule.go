package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/explain"
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
	e := report.ScheduleExplanation{Schedule: scheduleOf(&st.Schedule)}
	text := explain.Standing(&e.Schedule, decide.Behind(&st))
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
	of := row.At(st.Spec.Next(tick.Add(-time.Microsecond)))
	if between := run.Tick < row.At(tick) && row.At(tick) < run.Until; !there || between && of != row.At(tick) {
		return e, sentence.Text{explain.NoHistory(st, row.At(tick))}, nil
	}
	e.History = tickOf(&run)
	due := run.Tick.Add(decide.Jitter(st.Schedule.Name, st.Schedule.Jitter))
	text := sentence.Text{explain.Tick(&e.History, due.Std(), st.Now.Std())}
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

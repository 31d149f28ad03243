package plan

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
)

const (
	measureEvery = time.Minute
	// mostMeasured bounds how many schedules have metrics of their own: the first by name.
	mostMeasured = 200
)

// Measure says in the metrics how the schedules of this node's share stand, until the context ends. While no schedule
// is stored it reads nothing.
func (p *Planner) Measure(ctx context.Context) {
	defer p.Metrics.SetSchedules(nil)
	for some := true; lifecycle.Sleep(ctx, lifecycle.Jitter(measureEvery, 0.1)); {
		if p.idle() && !some { // paused schedules need no attention of a process
			continue
		}
		var err error
		if some, err = p.measure(ctx); err != nil && ctx.Err() == nil {
			p.Failed("measuring schedules", err)
		}
	}
}

// measure reports whether there is a schedule, or whether that is not known.
func (p *Planner) measure(ctx context.Context) (some bool, err error) {
	found, err := p.List(ctx, row.ScheduleFilter{Limit: mostMeasured})
	if err != nil {
		return true, err
	}
	mine, _ := batch.Split(found, func(s row.Schedule) bool { return p.Mine(s.ID) && !s.State.Retired() })
	unreadable := 0
	for i := range mine {
		if _, err := p.spec(&mine[i]); err != nil {
			unreadable++
		}
	}
	p.Metrics.SetUnreadableSchedules(unreadable)
	states, err := p.states(ctx, mine)
	if err != nil {
		return true, err
	}
	all := make([]metrics.Schedule, len(states))
	for i := range states {
		s := &states[i].Schedule
		all[i] = metrics.Schedule{
			Name: s.Name, Next: s.Next.Std(), LastSuccess: s.Success.Std(), Paused: s.State == row.SchedulePaused,
			PausedItself: s.PausedItself(),
			Failures:     s.Failures, Behind: decide.Behind(&states[i]), Unsuccessful: decide.Unsuccessful(&states[i]),
		}
		if all[i].LastSuccess.IsZero() {
			all[i].LastSuccess = s.Created.Std()
		}
	}
	p.Metrics.SetSchedules(all)
	return len(found) > 0, nil
}

// count counts what has become of ticks.
func (p *Planner) count(d *row.Decision) {
	for _, runs := range [][]row.ScheduleRun{d.New, d.Ended} {
		for _, run := range runs {
			if run.Outcome != row.OutcomeOpen {
				p.Metrics.Ticks(d.Schedule.Name, run.Outcome.String(), max(run.Ticks, 1))
			}
		}
	}
}

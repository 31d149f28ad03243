package view

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Schedule is a schedule in JSON.
func Schedule(s *delaytask.Schedule) wire.Schedule {
	v := wire.Schedule{
		ID: wire.ID(s.ID), Name: s.Name, Parent: s.Parent, Owner: s.Owner, Revision: wire.Time(s.Revision),
		Version: s.Version,
		Spec: wire.Spec{
			Lines: s.Spec.Lines, Zone: s.Spec.Zone, DST: string(s.Spec.DST), Start: bound(s.Spec.Start),
			End: bound(s.Spec.End),
		},
		Tag: s.Tag, App: s.Headers[delaytask.AppHeader], Headers: Headers(s.Headers), Body: wire.BodyOf(s.Body),
		TTRMS: s.TTR.Milliseconds(), MaxAttempts: s.MaxAttempts, Priority: s.Priority,
		Overlap: string(s.Overlap), MaxOpen: s.MaxOpen, Missed: string(s.Missed),
		StartWithinMS: s.StartWithin.Milliseconds(), JitterMS: s.Jitter.Milliseconds(), PauseAfter: s.PauseAfter,
		MaxRuns: s.MaxRuns, KeepRuns: s.KeepRuns, RetryPastNext: s.RetryPastNext,
		State: string(s.State), Reason: s.Reason,
		NextTick: wire.Time(s.NextTick), NextDue: wire.Time(s.NextDue), LastTick: wire.Time(s.LastTick),
		RunID: wire.ID(s.RunID), Runs: s.Runs, Skipped: s.Skipped, Failures: s.Failures,
		LastSuccess: wire.Time(s.LastSuccess), Created: wire.Time(s.Created), Updated: wire.Time(s.Updated),
	}
	return v
}

// bound is nil where there is none.
func bound(t time.Time) *wire.Moment {
	if t.IsZero() {
		return nil
	}
	m := wire.Moment(t)
	return &m
}

// ScheduleTicks is the history of a schedule in JSON. An empty list is [].
func ScheduleTicks(ticks []delaytask.ScheduleTick) wire.ScheduleTicks {
	v := wire.ScheduleTicks{Ticks: make([]wire.ScheduleTick, len(ticks))}
	for i := range ticks {
		v.Ticks[i] = scheduleTick(&ticks[i])
	}
	return v
}

func scheduleTick(t *delaytask.ScheduleTick) wire.ScheduleTick {
	return wire.ScheduleTick{
		Tick: wire.Time(t.Tick), Until: wire.Time(t.Until), Ticks: t.Ticks, Cause: string(t.Cause),
		Outcome: string(t.Outcome), TaskID: wire.ID(t.TaskID), Note: t.Note, Started: wire.Time(t.Start),
		Finished: wire.Time(t.Finish),
	}
}

// ScheduleExplanation is an explanation of a schedule in JSON.
func ScheduleExplanation(e *report.ScheduleExplanation) wire.ScheduleExplanation {
	v := wire.ScheduleExplanation{Schedule: Schedule(&e.Schedule), Tick: wire.Time(e.Tick), Text: e.Text}
	if !e.History.Tick.IsZero() {
		history := scheduleTick(&e.History)
		v.History = &history
	}
	return v
}

// scheduledRun is nil for a task that is not the run of a schedule.
func scheduledRun(of *delaytask.ScheduledRun) *wire.ScheduledRun {
	if of == nil {
		return nil
	}
	return &wire.ScheduledRun{
		Name: of.Name, Tick: wire.Time(of.Tick), Cause: string(of.Cause), Previous: wire.Time(of.Previous),
		Next: wire.Time(of.Next), LastSuccess: wire.Time(of.LastSuccess), Missed: of.Missed,
	}
}

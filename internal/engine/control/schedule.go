package control

import (
	"cmp"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
)

// NewSchedule makes what is stored of a schedule that a caller wants, except for its spec.
func (e *Control) NewSchedule(save *request.ScheduleSave) row.Schedule {
	run, set := e.saver.RunOf(&save.Task), &save.Settings
	s := row.Schedule{
		Name: save.Name, Tag: run.Tag, Body: run.Body, Headers: run.Headers, MaxAttempts: run.MaxAttempts, TTR: run.TTR,
		Priority: run.Priority, StartWithin: set.StartWithin, Jitter: set.Jitter, PauseAfter: set.PauseAfter,
		MaxRuns: set.MaxRuns, KeepRuns: cmp.Or(set.KeepRuns, delaytask.DefaultKeepRuns),
		RetryPastNext: set.RetryPastNext, Overlap: cmp.Or(set.Overlap, delaytask.OverlapSkip),
		Missed: cmp.Or(set.Missed, delaytask.MissedOnce),
	}
	if s.Overlap == delaytask.OverlapAllow {
		s.MaxOpen = cmp.Or(set.MaxOpen, delaytask.DefaultMaxOpen)
	}
	return s
}

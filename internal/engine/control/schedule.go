package control

import (
	"cmp"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// NewSchedule makes what is stored of a schedule that a caller wants, but for its spec.
func (e *Control) NewSchedule(save *processor.ScheduleSave) row.Schedule {
	run, set := e.saver.RunOf(&save.Task), &save.Settings
	s := row.Schedule{
		Name: save.Name, Tag: run.Tag, Body: run.Body, Headers: run.Headers, MaxAttempts: run.MaxAttempts, TTR: run.TTR,
		Priority: run.Priority, StartWithin: set.StartWithin, Jitter: set.Jitter, PauseAfter: set.PauseAfter,
		MaxRuns: set.MaxRuns, KeepRuns: cmp.Or(set.KeepRuns, processor.DefaultKeepRuns),
		RetryPastNext: set.RetryPastNext,
	}
	switch set.Overlap {
	case processor.OverlapQueueOne:
		s.Overlap = row.OverlapQueueOne
	case processor.OverlapReplace:
		s.Overlap = row.OverlapReplace
	case processor.OverlapAllow:
		s.Overlap, s.MaxOpen = row.OverlapAllow, cmp.Or(set.MaxOpen, processor.DefaultMaxOpen)
	}
	switch set.Missed {
	case processor.MissedSkip:
		s.Missed = row.MissedSkip
	case processor.MissedAll:
		s.Missed = row.MissedAll
	}
	return s
}

package request

import (
	"fmt"

	"github.com/delaytask/delaytask"
)

// ScheduleSave is a schedule to be stored, as [NewSchedule] makes it.
type ScheduleSave struct {
	Name     string
	Spec     delaytask.Spec
	Task     delaytask.Save // of its runs
	Settings delaytask.ScheduleSettings
}

// NewSchedule checks all of a schedule that can be checked without a database, but the lines of its spec.
//
// It returns [delaytask.ErrInvalidScheduleName], what [NewSave] returns, and [delaytask.ErrInvalidOption] for options
// that belong to a single task.
func NewSchedule(
	name string, spec delaytask.Spec, tag string, body any, limits Limits, opts ...delaytask.Option,
) (ScheduleSave, error) {
	if !delaytask.ValidScheduleName(name) {
		return ScheduleSave{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidScheduleName, name)
	}
	task, err := newSave(tag, body, 0, limits, opts)
	if err != nil {
		return ScheduleSave{}, err
	}
	s := ScheduleSave{Name: name, Spec: spec}
	if task.Schedule != nil {
		s.Settings = *task.Schedule
	}
	task.Schedule = nil
	s.Task = task
	return s, s.check()
}

func (s *ScheduleSave) check() error {
	t := &s.Task
	switch {
	case t.Key != "" || t.ID != 0 || !t.At.IsZero():
		return fmt.Errorf("%w: a key, an id and a time belong to one task, and the runs of a schedule have their own",
			delaytask.ErrInvalidOption)
	case t.MaxLate != 0:
		return fmt.Errorf("%w: a max lateness is for a single task: a schedule has WithStartWithin",
			delaytask.ErrInvalidOption)
	case s.Settings.MaxOpen != 0 && s.Settings.Overlap != delaytask.OverlapAllow:
		return fmt.Errorf("%w: max open is for the overlap %q: all others have one open run",
			delaytask.ErrInvalidOption,
			delaytask.OverlapAllow)
	}
	return nil
}

// ScheduleOptions returns the options that give a schedule the settings of s. Zero fields of one that is not stored
// have their defaults.
func ScheduleOptions(s *delaytask.Schedule) []delaytask.Option {
	options := []delaytask.Option{
		delaytask.WithTTR(s.TTR), delaytask.WithMaxAttempts(s.MaxAttempts), delaytask.WithPriority(s.Priority),
		delaytask.WithHeaders(s.Headers), delaytask.WithJitter(s.Jitter), delaytask.WithPauseAfter(s.PauseAfter),
		delaytask.WithMaxRuns(s.MaxRuns),
	}
	given := func(is bool, option delaytask.Option) {
		if is {
			options = append(options, option)
		}
	}
	given(s.MaxAttempts == 0 && s.ID != 0, delaytask.WithNoAttemptLimit())
	given(s.Overlap != "", delaytask.WithOverlap(s.Overlap))
	given(s.MaxOpen != 0, delaytask.WithMaxOpen(s.MaxOpen))
	given(s.Missed != "", delaytask.WithMissed(s.Missed))
	given(s.StartWithin != 0, delaytask.WithStartWithin(s.StartWithin))
	given(s.KeepRuns != 0, delaytask.WithKeepRuns(s.KeepRuns))
	given(s.RetryPastNext, delaytask.WithRetryPastNext())
	return options
}

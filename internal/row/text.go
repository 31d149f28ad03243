package row

import (
	"slices"

	"github.com/delaytask/delaytask"
)

// The public texts stand at the numbers that are stored.
var (
	statuses = []delaytask.Status{
		Pending: delaytask.Pending, Completed: delaytask.Completed, Failed: delaytask.Failed,
		Executing: delaytask.Executing, Cancelled: delaytask.Cancelled,
	}
	states = []delaytask.ScheduleState{
		ScheduleActive: delaytask.ScheduleActive, SchedulePaused: delaytask.SchedulePaused,
		ScheduleEnded: delaytask.ScheduleEnded, ScheduleRetired: delaytask.ScheduleRetired,
		ScheduleRetiredPaused: delaytask.ScheduleRetired,
	}
	causes = []delaytask.Cause{
		CauseTick: delaytask.CauseTick, CauseLate: delaytask.CauseLate, CauseManual: delaytask.CauseManual,
		CauseBackfill: delaytask.CauseBackfill,
	}
	outcomes = []delaytask.Outcome{
		OutcomeOpen: delaytask.OutcomeOpen, OutcomeCompleted: delaytask.OutcomeCompleted,
		OutcomeFailed: delaytask.OutcomeFailed, OutcomeCancelled: delaytask.OutcomeCancelled,
		OutcomeSkipped: delaytask.OutcomeSkipped, OutcomeMissed: delaytask.OutcomeMissed,
		OutcomeUnknown: delaytask.OutcomeUnknown,
	}
)

// textOf returns "unknown" for a number of a later version.
func textOf[E ~string, N ~uint8](texts []E, number N) E {
	if int(number) < len(texts) && texts[number] != "" {
		return texts[number]
	}
	return "unknown"
}

// Text returns the public status.
func (s Status) Text() delaytask.Status { return textOf(statuses, s) }

func (s Status) String() string { return string(s.Text()) }

// ParseStatus returns the status with the text.
func ParseStatus(text delaytask.Status) (Status, bool) {
	number := slices.Index(statuses, text)
	return Status(max(number, 0)), number >= 0
}

// Text returns the public state.
func (s ScheduleState) Text() delaytask.ScheduleState { return textOf(states, s) }

func (s ScheduleState) String() string { return string(s.Text()) }

// Text returns the public cause.
func (c Cause) Text() delaytask.Cause { return textOf(causes, c) }

func (c Cause) String() string { return string(c.Text()) }

// Text returns the public outcome.
func (o Outcome) Text() delaytask.Outcome { return textOf(outcomes, o) }

func (o Outcome) String() string { return string(o.Text()) }

package explain

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
)

// Standing says how a schedule stands. behind is how many of its ticks wait.
func Standing(of *delaytask.Schedule, behind int) sentence.Text {
	switch of.State {
	case delaytask.SchedulePaused:
		if of.By != "" {
			return sentence.Text{sentence.Of(sentence.SchedulePausedBy, since(of), of.By, orUnknown(of.Reason))}
		}
		return sentence.Text{sentence.Of(sentence.SchedulePaused, since(of), orUnknown(of.Reason))}
	case delaytask.ScheduleEnded:
		return sentence.Text{sentence.Of(sentence.ScheduleEnded, orUnknown(of.Reason))}
	case delaytask.ScheduleRetired:
		return sentence.Text{sentence.Of(sentence.ScheduleRetired, since(of), of.Owner)}
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
	if behind > 0 {
		text = append(text, sentence.Of(sentence.ScheduleBehind, behind))
	}
	if of.Failures > 0 {
		text = append(text, sentence.Of(sentence.ScheduleFailures, of.Failures))
	}
	return text
}

// orUnknown returns a stored reason as a parameter of a sentence.
// since is when the schedule came into its state, or when it last changed where an older program has brought it there.
func since(of *delaytask.Schedule) time.Time {
	if of.Since.IsZero() {
		return of.Updated
	}
	return of.Since
}

func orUnknown(reason string) any {
	if reason == "" {
		return sentence.Of(sentence.NoReason)
	}
	return sentence.Quote(reason)
}

// Tick says what became of a tick that is in the history, and is due at a moment.
func Tick(t *delaytask.ScheduleTick, due, now time.Time) sentence.Sentence {
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
		if due.After(now) {
			return sentence.Of(sentence.TickSkipped, orUnknown(t.Note))
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

// NoHistory says why the history has nothing about a moment.
func NoHistory(st *decide.State, tick row.Time) sentence.Sentence {
	s := &st.Schedule
	before, after := row.At(st.Spec.Prev(tick.Std())), row.At(st.Spec.Next((tick - 1).Std()))
	switch {
	case after != tick:
		return noTick(before, after)
	case tick < s.Created:
		return sentence.Of(sentence.TickTooEarly, s.Created.Std())
	case !s.Next.IsZero() && tick < s.Next, s.Next.IsZero() && tick <= s.Last:
		return sentence.Of(sentence.TickForgotten, s.KeepRuns)
	case s.State != row.ScheduleActive:
		code := sentence.TickStopped
		if tick > st.Now {
			code = sentence.TickRests
		}
		return sentence.Of(code, sentence.Of(sentence.State+sentence.Code(s.State.Text())), orUnknown(s.Reason))
	case s.Next.IsZero():
		return sentence.Of(sentence.TickAfterLast, s.Last.Std())
	case !decide.ComingOf(s, st.Spec, st.History).Has(tick):
		return sentence.Of(sentence.TickBeyond, s.MaxRuns)
	default:
		return sentence.Of(sentence.TickToCome)
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

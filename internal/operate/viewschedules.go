package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/report"
)

// Schedule is a schedule as a caller sees it: without its body where that takes a right that the caller lacks.
type Schedule struct {
	delaytask.Schedule
	Bytes    int  // of its body, if that was read
	Redacted bool // a mask stands for a secret in it
}

// knows returns a context in which the schedule answers as if it did not exist, unless the caller may read its tag. The
// check is made with what is read, not before.
func (v *View) knows(ctx context.Context, name string) (context.Context, error) {
	if err := v.MayListSchedules(); err != nil {
		return nil, err
	}
	if !delaytask.ValidTag(name) { // names have the characters of tags
		return nil, fmt.Errorf("schedule %.140q: %w", name, delaytask.ErrScheduleNotFound)
	}
	return plan.WithGuard(ctx, func(tag string) error {
		if !v.May(access.Read, tag) {
			return delaytask.ErrScheduleNotFound
		}
		return nil
	}), nil
}

// Schedule returns a schedule. It and all that follow take the verb read.
func (v *View) Schedule(ctx context.Context, name string) (s Schedule, err error) {
	if ctx, err = v.knows(ctx, name); err != nil {
		return s, err
	}
	stored, err := v.o.Core.GetSchedule(ctx, name)
	if err != nil {
		return s, err
	}
	return v.SeenSchedule(&stored), nil
}

// SeenSchedule is Schedule for one that was read, and that the caller may read.
func (v *View) SeenSchedule(stored *delaytask.Schedule) Schedule {
	s, m := *stored, v.masking(stored.Tag)
	if !v.May(access.Bodies, s.Tag) {
		s.Body = nil
	}
	s.Body, s.Headers, s.Reason = m.body(s.Body), m.headers(s.Headers), m.text(s.Reason)
	return Schedule{Schedule: s, Bytes: len(stored.Body), Redacted: m.masked}
}

// Coming returns the next n ticks to come of a schedule that the caller may read, and warnings about its definition.
func (v *View) Coming(ctx context.Context, s *delaytask.Schedule, n int) ([]delaytask.Tick, []string, error) {
	return v.o.Core.Coming(ctx, s, n)
}

// Ticks returns what became of the ticks of a schedule.
func (v *View) Ticks(
	ctx context.Context, name string, before time.Time, limit int,
) (ticks []delaytask.ScheduleTick, err error) {
	if ctx, err = v.knows(ctx, name); err != nil {
		return nil, err
	}
	ticks, err = v.o.Core.ScheduleTicks(ctx, name, before, limit)
	for i := range ticks {
		ticks[i].Note = v.Text("", ticks[i].Note)
	}
	return ticks, err
}

// ScheduleExplanation says how a schedule stands, or what became of one of its ticks.
type ScheduleExplanation struct {
	report.ScheduleExplanation               // without its schedule
	Schedule                   Schedule      // as the caller sees it
	Sentences                  sentence.Text // of the Text
}

// ExplainSchedule says how a schedule stands, or what became of the tick where that is not zero.
func (v *View) ExplainSchedule(ctx context.Context, name string, tick time.Time) (e ScheduleExplanation, err error) {
	if ctx, err = v.knows(ctx, name); err != nil {
		return e, err
	}
	if e.ScheduleExplanation, e.Sentences, err = v.o.Core.ExplainSchedule(ctx, name, tick); err != nil {
		return e, err
	}
	e.Schedule = v.SeenSchedule(&e.ScheduleExplanation.Schedule)
	e.ScheduleExplanation.Schedule = e.Schedule.Schedule
	e.Text, e.History.Note = v.Text(e.Schedule.Tag, e.Text), v.Text(e.Schedule.Tag, e.History.Note)
	return e, nil
}

// pageBytes bounds the bodies of a page of schedules. One schedule alone may have more.
const pageBytes = 16 << 20

// MayListSchedules returns an error for a caller that may not read schedules of some tag.
func (v *View) MayListSchedules() error {
	if err := v.Allow(access.Read, ""); err != nil {
		return err
	}
	return v.reveals("")
}

// Schedules lists schedules of tags that the caller may read, up to the limit of the filter. It reads so many at once
// as given, until the page is full: the next one begins at a name that the caller may see.
func (v *View) Schedules(
	ctx context.Context, f delaytask.ScheduleFilter, atOnce int,
) (all []Schedule, next string, err error) {
	if err := v.MayListSchedules(); err != nil {
		return nil, "", err
	}
	limit, held := f.Limit, 0
	f.Limit = atOnce
	for {
		page, err := v.o.Core.ListSchedules(ctx, f)
		if err != nil {
			return nil, "", err
		}
		for i := range page.Schedules {
			s := &page.Schedules[i]
			if !v.May(access.Read, s.Tag) {
				continue
			}
			if n := len(all); n == limit || n > 0 && held+len(s.Body) > pageBytes {
				return all, all[n-1].Name, nil
			}
			held += len(s.Body)
			all = append(all, v.SeenSchedule(s))
		}
		if f.AfterName = page.Next; page.Next == "" {
			return all, "", nil
		}
	}
}

package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// plan is one of the two forms of a scheduler on a database that a library runs the tasks of.
type plan struct {
	*testing.T
	processor.Scheduler
	runs  *scheduler.Scheduler
	dsn   string
	name  string // begins all names
	began chan *delaytask.Task
	end   chan struct{} // lets runs of the tag "hold" end
}

func (p *plan) must(err error) {
	p.Helper()
	servertest.OK(p.T, err)
}

// TestSchedules runs what both forms do with schedules, on each database.
func TestSchedules(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		p := plan{runs: open(t, db), dsn: db.DSN, began: make(chan *delaytask.Task, 100), end: make(chan struct{})}
		servertest.OK(t, p.runs.Register("work", processor.Func(func(_ context.Context, task *delaytask.Task) error {
			p.began <- task
			return nil
		})))
		start(t, p.runs, "hold", func(ctx context.Context, task *delaytask.Task) error {
			p.began <- task
			select {
			case <-p.end:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		for name, form := range map[string]processor.Scheduler{"library": p.runs, "client": dial(t, serveOn(t, db))} {
			p.Scheduler, p.name = form, name+"/"
			t.Run(name, func(t *testing.T) {
				p.T = t
				p.definesAndLists()
				p.guardsSaves()
				p.endsAndGoesOn()
				p.operates()
				p.triggers()
				p.pops()
				p.backfills()
				p.refuses()
			})
		}
	})
}

// yearly names its ticks in Berlin, far from now.
func yearly() delaytask.Spec {
	s := delaytask.Cron("30 2 1 2 *", "Europe/Berlin").Except("2031-02-01")
	s.DST, s.Start = delaytask.DSTSkip, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	return s
}

func (p *plan) definesAndLists() {
	ctx, name := p.Context(), p.name+"daily"
	options := []delaytask.Option{
		delaytask.WithOverlap(delaytask.OverlapAllow), delaytask.WithMaxOpen(3),
		delaytask.WithMissed(delaytask.MissedAll),
		delaytask.WithStartWithin(time.Hour), delaytask.WithJitter(time.Minute), delaytask.WithPauseAfter(4),
		delaytask.WithMaxRuns(5), delaytask.WithKeepRuns(6), delaytask.WithRetryPastNext(),
		delaytask.WithTTR(20 * time.Second), delaytask.WithMaxAttempts(7), delaytask.WithPriority(8),
		delaytask.WithHeader("trace", "x"), delaytask.WithApp("shop"),
	}
	saved, err := p.SaveSchedule(ctx, name, yearly(), "work", map[string]int{"n": 1}, options...)
	p.must(err)
	read, err := p.GetSchedule(ctx, name)
	p.must(err)
	inside, err := p.runs.GetSchedule(ctx, name)
	p.must(err)
	for _, s := range []*delaytask.Schedule{&inside, &read} { // the service tells times to the millisecond
		for _, at := range []*time.Time{&s.Created, &s.Updated, &s.NextDue, &s.Since} {
			*at = at.Truncate(time.Millisecond)
		}
	}
	if !reflect.DeepEqual(read, inside) || saved.ID != read.ID || saved.NextTick != read.NextTick {
		p.Errorf("\nsaved %+v\nread  %+v\nis    %+v", saved, read, inside)
	}
	if read.Overlap != delaytask.OverlapAllow || read.MaxOpen != 3 || read.Missed != delaytask.MissedAll ||
		read.StartWithin != time.Hour || read.Jitter != time.Minute || read.PauseAfter != 4 || read.MaxRuns != 5 ||
		read.KeepRuns != 6 || !read.RetryPastNext || read.TTR != 20*time.Second || read.MaxAttempts != 7 ||
		read.Priority != 8 || !maps.Equal(read.Headers, map[string]string{"trace": "x", "delaytask-app": "shop"}) ||
		string(read.Body) != `{"n":1}` || read.State != delaytask.ScheduleActive || read.Spec.Zone != "Europe/Berlin" ||
		len(read.Spec.Lines) != 2 || read.Spec.Start.IsZero() || read.NextDue.Before(read.NextTick) {
		p.Errorf("got %+v", read)
	}
	again, err := p.SaveSchedule(ctx, name, yearly(), "work", map[string]int{"n": 1}, options...)
	if p.must(err); again.Version != saved.Version {
		p.Errorf("the same definition made version %d of %d", again.Version, saved.Version)
	}
	again, err = p.SaveSchedule(ctx, name, yearly(), "hold", "other")
	if p.must(err); again.Version != saved.Version+1 || again.Tag != "hold" ||
		again.KeepRuns != delaytask.DefaultKeepRuns {
		p.Errorf("another definition made %+v", again)
	}
	for _, more := range []string{"a", "z"} {
		_, err := p.SaveSchedule(ctx, p.name+more, yearly(), "work", nil)
		p.must(err)
	}
	var names []string
	for f := (delaytask.ScheduleFilter{Prefix: p.name, Limit: 2}); ; {
		page, err := p.ListSchedules(ctx, f)
		p.must(err)
		for _, s := range page.Schedules {
			names = append(names, strings.TrimPrefix(s.Name, p.name))
		}
		if f.AfterName = page.Next; page.Next == "" {
			break
		}
	}
	if !slices.Equal(names, []string{"a", "daily", "z"}) {
		p.Errorf("the list has %q", names)
	}
	p.must(p.DeleteSchedule(ctx, p.name+"z"))
	_, err = p.GetSchedule(ctx, p.name+"z")
	wantError(p.T, "a deleted schedule", err, delaytask.ErrScheduleNotFound)
	page, err := p.ListSchedules(ctx, delaytask.ScheduleFilter{Owner: "none"})
	if err != nil || page.Schedules == nil || len(page.Schedules) != 0 {
		p.Errorf("of no owner: %+v, %v", page, err)
	}
}

// guardsSaves: a save names what it may replace. Ticks and pauses make versions, and no other definition.
func (p *plan) guardsSaves() {
	ctx, name := p.Context(), p.name+"guarded"
	wantError(p.T, "an edit of none", p.saving(name, yearly(), "work", delaytask.WithIfVersion(0))(),
		delaytask.ErrScheduleChanged)
	p.must(p.saving(name, yearly(), "work", delaytask.WithIfNew())())
	wantError(p.T, "a second create", p.saving(name, yearly(), "work", delaytask.WithIfNew())(),
		delaytask.ErrScheduleExists)
	read, err := p.GetSchedule(ctx, name)
	p.must(err)
	p.must(p.PauseSchedule(ctx, name))
	p.must(p.ResumeSchedule(ctx, name))
	edit := func(version int64, priority int) func() error {
		return p.saving(name, yearly(), "work", delaytask.WithIfVersion(version), delaytask.WithPriority(priority))
	}
	p.must(edit(read.Version, 1)())
	wantError(p.T, "an edit of what is no more", edit(read.Version, 2)(), delaytask.ErrScheduleChanged)
	p.must(edit(read.Version, 1)()) // is stored already
	now, err := p.GetSchedule(ctx, name)
	p.must(err)
	wantError(p.T, "a version to come", edit(now.Version+1, 3)(), delaytask.ErrScheduleChanged)
	wantError(p.T, "no version", edit(-1, 3)(), delaytask.ErrInvalidOption)
	p.must(edit(now.Version, 3)())
	p.must(p.DeleteSchedule(ctx, name))
}

// endsAndGoesOn: a definition without an end goes on, also after its end has come.
func (p *plan) endsAndGoesOn() {
	ctx, name := p.Context(), p.name+"ends"
	read := func() (s delaytask.Schedule) {
		s, err := p.GetSchedule(ctx, name)
		p.must(err)
		return s
	}
	for _, last := range []time.Duration{50 * 365 * 24 * time.Hour, 3 * time.Second} {
		ends := delaytask.Every(2 * time.Second)
		ends.End = time.Now().Add(last).UTC().Truncate(time.Second)
		p.must(p.saving(name, ends, "ended")())
		if end := read().Spec.End; !end.Equal(ends.End) {
			p.Errorf("it ends at %v, want %v", end, ends.End)
		}
		if last < time.Minute {
			servertest.Eventually(p.T, "it has no tick left", func() bool { return read().NextTick.IsZero() })
		}
		p.must(p.saving(name, yearly(), "ended")())
		if s := read(); !s.Spec.End.IsZero() || s.NextTick.IsZero() || s.State != delaytask.ScheduleActive {
			p.Errorf("without an end it is %+v", s)
		}
	}
	p.must(p.saving(name, delaytask.Every(time.Second), "ended")())
	p.must(p.PauseSchedule(ctx, name, delaytask.Reason("moving")))
	servertest.Eventually(p.T, "the history tells of the pause", func() bool {
		p.must(p.ResumeSchedule(ctx, name))
		p.must(p.PauseSchedule(ctx, name, delaytask.Reason("moving")))
		ticks, err := p.ScheduleTicks(ctx, name, time.Time{}, 0)
		p.must(err)
		return slices.ContainsFunc(ticks, func(t delaytask.ScheduleTick) bool {
			return t.Outcome == delaytask.OutcomeSkipped && strings.HasPrefix(t.Note, "paused ") &&
				strings.HasSuffix(t.Note, ": moving")
		})
	})
	p.must(p.DeleteSchedule(ctx, name))
}

func (p *plan) operates() {
	ctx, name := p.Context(), p.name+"a"
	is := func(what string, state delaytask.ScheduleState, reason string) (s delaytask.Schedule) {
		p.Helper()
		s, err := p.GetSchedule(ctx, name)
		if p.must(err); s.State != state || s.Reason != reason {
			p.Errorf("%s: %s because of %q", what, s.State, s.Reason)
		}
		return s
	}
	p.must(p.PauseSchedule(ctx, name, delaytask.Reason("moving")))
	p.must(p.PauseSchedule(ctx, name, delaytask.Reason("moved")))
	is("paused", delaytask.SchedulePaused, "moved")
	p.must(p.ResumeSchedule(ctx, name))
	before := is("resumed", delaytask.ScheduleActive, "")
	wantError(p.T, "resume twice", p.ResumeSchedule(ctx, name), delaytask.ErrScheduleState)
	tick, err := p.SkipTick(ctx, name)
	after := is("skipped", delaytask.ScheduleActive, "")
	if err != nil || !tick.Equal(before.NextTick) || !after.NextTick.After(tick) || !after.LastTick.Equal(tick) {
		p.Errorf("skipped %v, %v: from %+v to %+v", tick, err, before, after)
	}
	ticks, err := p.ScheduleTicks(ctx, name, time.Time{}, 0)
	if err != nil || len(ticks) != 1 || ticks[0].Outcome != delaytask.OutcomeSkipped || !ticks[0].Tick.Equal(tick) ||
		ticks[0].Ticks != 1 || ticks[0].Note == "" {
		p.Errorf("history %+v, %v", ticks, err)
	}
	if ticks, err := p.ScheduleTicks(ctx, name, tick, 1); err != nil || len(ticks) != 0 {
		p.Errorf("history before the tick: %+v, %v", ticks, err)
	}
	stands, err := p.ExplainSchedule(ctx, name, time.Time{})
	p.must(err)
	why, err := p.ExplainSchedule(ctx, name, tick)
	if err != nil || !strings.HasPrefix(why.Text, "It does not run: skipped") || !why.History.Tick.Equal(tick) ||
		why.Schedule.Name != name || !strings.HasPrefix(stands.Text, "Its next tick is ") {
		p.Errorf("%q and %+v, %v", stands.Text, why, err)
	}
	p.must(p.PauseSchedule(ctx, name))
	p.must(p.saving(name, delaytask.Cron("* * * * *", ""), "work")())
	if denser := is("denser", delaytask.SchedulePaused, ""); !denser.NextTick.Before(tick) {
		p.Errorf("a denser definition begins at %v, behind the skipped tick %v", denser.NextTick, tick)
	}
	p.must(p.saving(name, yearly(), "work")())
	if yearly := is("yearly", delaytask.SchedulePaused, ""); !yearly.NextTick.Equal(after.NextTick) {
		p.Errorf("the skipped tick %v is to come again: %v", tick, yearly.NextTick)
	}
	p.must(p.ResumeSchedule(ctx, name))
	p.must(p.ResetSchedule(ctx, name))
	if reset := is("reset", delaytask.ScheduleActive, ""); !reset.NextTick.Equal(before.NextTick) {
		p.Errorf("reset to %v, want %v", reset.NextTick, before.NextTick)
	}
}

func (p *plan) triggers() {
	ctx, name := p.Context(), p.name+"daily" // of the tag hold
	id, err := p.TriggerSchedule(ctx, name, false)
	p.must(err)
	seen := wait(p.T, p.began)
	if s := seen.Schedule; seen.ID != id || s == nil || s.Name != name || s.Cause != delaytask.CauseManual {
		p.Errorf("run %d is %+v", id, s)
	}
	stored, inside := get(p.T, p.Scheduler, id), get(p.T, p.runs, id)
	if s := stored.Schedule; s == nil || s.Name != name || s.Next.IsZero() || s.Tick.Sub(inside.Schedule.Tick).Abs() >
		time.Millisecond {
		p.Errorf("stored is %+v, want %+v", s, inside.Schedule)
	}
	if ran, told := seen.Schedule.Tick.Location(), stored.Schedule.Tick.Location(); ran.String() != "Europe/Berlin" ||
		told.String() != "Europe/Berlin" {
		p.Errorf("the processor is told the tick in %v, and readers in %v", ran, told)
	}
	_, err = p.TriggerSchedule(ctx, name, false)
	wantError(p.T, "a trigger beside", err, delaytask.ErrScheduleBusy)
	second, err := p.TriggerSchedule(ctx, name, true)
	p.must(err)
	wait(p.T, p.began)
	for range 2 {
		p.end <- struct{}{}
	}
	for _, run := range []int64{id, second} {
		if task := settled(p.T, p.Scheduler, run); task.Status != delaytask.Completed {
			p.Errorf("run %d is %s", run, task.Status)
		}
	}
	servertest.Eventually(p.T, "the history knows the ends", func() bool {
		ticks, err := p.ScheduleTicks(ctx, name, time.Time{}, 10)
		p.must(err)
		return len(ticks) == 2 && !slices.ContainsFunc(ticks, func(t delaytask.ScheduleTick) bool {
			return t.Outcome != delaytask.OutcomeCompleted || t.TaskID != id && t.TaskID != second || t.Start.IsZero()
		})
	})
}

func (p *plan) pops() {
	ctx, name := p.Context(), p.name+"pop"
	p.must(p.saving(name, yearly(), name)())
	id, err := p.TriggerSchedule(ctx, name, false)
	p.must(err)
	popped, err := p.Pop(ctx, name)
	p.must(err)
	if s := popped[0].Schedule; popped[0].ID != id || s == nil || s.Name != name || s.Cause != delaytask.CauseManual ||
		s.Next.IsZero() || s.Tick.Location().String() != "Europe/Berlin" {
		p.Errorf("popped %+v", s)
	}
	p.must(popped[0].Finish(ctx))
}

func (p *plan) backfills() {
	ctx, name := p.Context(), p.name+"a" // of the tag work
	from := time.Date(2021, 2, 1, 1, 30, 0, 0, time.UTC)
	child, err := p.Backfill(ctx, name, from, from.AddDate(4, 0, 0), 1)
	p.must(err)
	for year := range 5 {
		run := wait(p.T, p.began)
		if s := run.Schedule; s == nil || s.Name != child || s.Cause != delaytask.CauseBackfill ||
			!s.Tick.Equal(from.AddDate(year, 0, 0)) {
			p.Errorf("run %d is %+v", year, s)
		}
	}
	servertest.Eventually(p.T, "the backfill ends", func() bool {
		s, err := p.GetSchedule(ctx, child)
		p.must(err)
		return s.State == delaytask.ScheduleEnded && s.Parent == name
	})
	ticks, err := p.ScheduleTicks(ctx, child, time.Time{}, 10)
	if err != nil || len(ticks) != 5 {
		p.Errorf("the history of the backfill: %+v, %v", ticks, err)
	}
	p.must(p.DeleteSchedule(ctx, child))
	for what, end := range map[string][2]time.Time{
		"without a tick": {from.Add(1), from.AddDate(0, 1, 0)}, "to come": {from, from.AddDate(100, 0, 0)},
		"backwards": {from.AddDate(3, 0, 0), from}, "of zeros": {},
	} {
		_, err := p.Backfill(ctx, name, end[0], end[1], 1)
		wantError(p.T, "a backfill "+what, err, delaytask.ErrInvalidRange)
	}
	for _, n := range []int{-1, 0, 1001} {
		_, err := p.Backfill(ctx, name, from, from.AddDate(4, 0, 0), n)
		wantError(p.T, fmt.Sprintf("%d at once", n), err, delaytask.ErrInvalidOption)
	}
}

func (p *plan) saving(name string, when delaytask.Spec, tag string, opts ...delaytask.Option) func() error {
	return func() error {
		_, err := p.SaveSchedule(p.Context(), name, when, tag, nil, opts...)
		return err
	}
}

func (p *plan) refuses() {
	ctx, long := p.Context(), strings.Repeat("x", 97)
	for want, saves := range map[error][]func() error{
		delaytask.ErrInvalidScheduleName: {
			p.saving("", yearly(), "work"), p.saving(long, yearly(), "work"), p.saving("a b", yearly(), "work"),
			p.saving("\x00", yearly(), "work"), p.saving(p.name+"a/backfill/1", yearly(), "work"),
		},
		delaytask.ErrInvalidSpec: {
			p.saving("x", delaytask.Spec{}, "work"), p.saving("x", delaytask.Cron("* * *", ""), "work"),
			p.saving("x", delaytask.At(time.Unix(1e9, 0)), "work"),
			p.saving("x", delaytask.Cron("@daily", "Local"), "work"),
		},
		delaytask.ErrInvalidTag:     {p.saving("x", yearly(), ""), p.saving("x", yearly(), "a b")},
		delaytask.ErrInvalidTTR:     {p.saving("x", yearly(), "work", delaytask.WithTTR(-1))},
		delaytask.ErrInvalidHeaders: {p.saving("x", yearly(), "work", delaytask.WithHeader("\xff", ""))},
		delaytask.ErrInvalidOption: {
			p.saving("x", yearly(), "work", delaytask.WithOverlap("x")),
			p.saving("x", yearly(), "work", delaytask.WithKey("k")),
			p.saving("x", yearly(), "work", delaytask.WithMaxOpen(2)), p.saving("x", yearly(), "work", nil),
			p.saving("x", yearly(), "work", delaytask.WithTime(time.Now())),
		},
	} {
		for i, save := range saves {
			wantError(p.T, fmt.Sprintf("save %d", i), save(), want)
		}
	}
	err := p.saving("x", delaytask.Spec{Lines: []string{"@daily", "61 * * * *"}}, "work")()
	if wrong, is := errors.AsType[*delaytask.SpecError](err); !is || wrong.Line != 2 || wrong.Column != 1 {
		p.Errorf("a bad line: %v", err)
	}
	for _, name := range []string{"", "none", long + long, "a b", "\x00", "..", "é"} {
		_, gets := p.GetSchedule(ctx, name)
		_, skips := p.SkipTick(ctx, name)
		_, triggers := p.TriggerSchedule(ctx, name, true)
		_, reads := p.ScheduleTicks(ctx, name, time.Time{}, 0)
		_, fills := p.Backfill(ctx, name, time.Unix(1e9, 0), time.Unix(2e9, 0), 1)
		_, explains := p.ExplainSchedule(ctx, name, time.Time{})
		for i, err := range []error{gets, skips, triggers, reads, fills, explains, p.PauseSchedule(ctx, name),
			p.ResumeSchedule(ctx, name), p.ResetSchedule(ctx, name), p.DeleteSchedule(ctx, name)} {
			wantError(p.T, fmt.Sprintf("%q, call %d", name, i), err, delaytask.ErrScheduleNotFound)
		}
	}
	_, lists := p.ListSchedules(ctx, delaytask.ScheduleFilter{Limit: -1})
	_, reads := p.ScheduleTicks(ctx, p.name+"a", time.Time{}, -1)
	wantError(p.T, "list", lists, delaytask.ErrInvalidOption)
	wantError(p.T, "ticks", reads, delaytask.ErrInvalidOption)
	p.must(p.saving(p.name+"owned", yearly(), "work")())
	servertest.Exec(p.T, p.dsn, "UPDATE delay_task_schedule SET owner = 'app' WHERE name = ?", p.name+"owned")
	_, err = p.SaveSchedule(ctx, p.name+"owned", yearly(), "work", nil)
	wantError(p.T, "save an owned one", err, delaytask.ErrScheduleOwned)
	wantError(p.T, "delete an owned one", p.DeleteSchedule(ctx, p.name+"owned"), delaytask.ErrScheduleOwned)
}

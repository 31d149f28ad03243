package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/audit"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/planner"
	"github.com/delaytask/delaytask/internal/sentence"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// schedulePage is one schedule.
type schedulePage struct {
	Schedule   delaytask.Schedule // without its body
	Body       int                // bytes of it
	Overdue    bool
	Waits      bool // Overdue, but only until the run before has ended
	Ticks      []upcoming
	Warnings   []string
	Unreadable string // why the ticks are not known here
	History    []decided
	First      bool          // the history begins with the newest
	Older      string        // the query of the next page of the history
	Why        sentence.Text // none in a refresh: to ask locks the run's row
	Asked      time.Time     // the tick that Why is about
	Did        string        // the action before
	Run        int64         // the task that it has made
	Quoted     string        // the name, for a shell
}

// decided is a row of the history.
type decided struct {
	delaytask.ScheduleTick
	Late   time.Duration // from the tick, later by the jitter, to the start
	Took   time.Duration
	Class  string // the colour of the outcome
	Height int    // of its bar, of 24
}

const (
	ticksShown   = 20
	historyShown = 50
	barHeight    = 24
)

// onSchedule returns a context in which a schedule is read or changed only if the user may do it. One of a tag that the
// user does not read is not there. The check is made with what is read or changed, not before.
func (v *view) onSchedule(verb access.Verb) context.Context {
	return planner.WithGuard(v.r.Context(), func(tag string) error {
		if !v.Caller.May(access.Read, tag) {
			return delaytask.ErrScheduleNotFound
		}
		return v.allow(verb, tag)
	})
}

// nameOf reads the name in the path. It returns ErrScheduleNotFound for one that no schedule has.
func (v *view) nameOf() (string, error) {
	name := wire.FromSegment(v.r.PathValue("name"))
	if !processor.ValidTag(name) { // names have the characters of tags
		return "", delaytask.ErrScheduleNotFound
	}
	return name, nil
}

// schedule shows one schedule.
func (v *view) schedule() (any, error) {
	name, err := v.nameOf()
	if err != nil {
		return nil, err
	}
	before, err := v.instant("before")
	if err != nil {
		return nil, err
	}
	asked, err := v.instant("tick")
	if err != nil {
		return nil, err
	}
	ctx := v.onSchedule(access.Read)
	s, err := v.scheduler.GetSchedule(ctx, name)
	if err != nil {
		return nil, err
	}
	shown := schedulePage{
		Schedule: s, Body: len(s.Body), Overdue: v.overdue(&s), First: before.IsZero(), Asked: asked,
		Quoted: quoted(name),
	}
	if did := v.r.URL.Query().Get("did"); texts["schedule.did."+did] != nil {
		shown.Did = did
	}
	shown.Schedule.Body = nil
	shown.Run, _ = strconv.ParseInt(v.r.URL.Query().Get("run"), 10, 64)
	if s.State == processor.ScheduleActive || s.State == processor.SchedulePaused {
		shown.Ticks, shown.Warnings, err = v.upcoming(&s, ticksShown)
		if err != nil {
			shown.Unreadable = err.Error()
		}
	}
	ticks, err := v.scheduler.ScheduleTicks(ctx, name, before, historyShown)
	if err != nil {
		return nil, err
	}
	shown.History = historyOf(ticks, s.NextDue.Sub(s.NextTick))
	shown.Waits = shown.Overdue && s.Overlap != delaytask.OverlapAllow &&
		slices.ContainsFunc(ticks, func(t delaytask.ScheduleTick) bool { return t.Outcome == processor.OutcomeOpen })
	if n := len(ticks); n == historyShown {
		shown.Older = query("before", ticks[n-1].Tick.Format(time.RFC3339Nano))
	}
	if !isPart(v.r) {
		if _, shown.Why, err = bridge.ExplainSchedule(ctx, v.scheduler, name, asked); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// instant reads a time of the query, which is zero where there is none. It returns the canonical address for a time of
// the reader's zone, as a form sends it.
func (v *view) instant(name string) (time.Time, error) {
	text := v.r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := v.timeOf(name, text)
	if err != nil {
		return t, err
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
		return t, canonical(v.lastPart() + "?" + query(name, t.UTC().Format(time.RFC3339Nano)))
	}
	return t, nil
}

// ShowsLocal reports whether the ticks are worth a second time, in the zone of the schedule. Intervals have none.
func (v *view) ShowsLocal(p schedulePage) bool {
	cron := func(line string) bool { return !strings.HasPrefix(line, "@every") }
	noted := func(t upcoming) bool { return t.Note != "" }
	elsewhere := v.SpecZone(p.Schedule.Spec) != v.Zone && slices.ContainsFunc(p.Schedule.Spec.Lines, cron)
	return elsewhere || slices.ContainsFunc(p.Ticks, noted)
}

// classes are the colours of outcomes.
var classes = map[processor.Outcome]string{
	processor.OutcomeOpen: "executing", processor.OutcomeCompleted: "completed", processor.OutcomeFailed: "failed",
	processor.OutcomeCancelled: "cancelled", processor.OutcomeSkipped: "overdue", processor.OutcomeMissed: "overdue",
	processor.OutcomeUnknown: "cancelled",
}

func historyOf(ticks []delaytask.ScheduleTick, jitter time.Duration) []decided {
	all := make([]decided, len(ticks))
	var longest time.Duration
	for i, t := range ticks {
		d := decided{ScheduleTick: t, Class: classes[t.Outcome]}
		due := t.Tick.Add(jitter)
		if t.Cause == processor.CauseManual {
			due = t.Tick
		}
		if !t.Start.IsZero() {
			d.Late = max(0, t.Start.Sub(due))
			if !t.Finish.IsZero() {
				d.Took = max(0, t.Finish.Sub(t.Start))
			}
		}
		longest = max(longest, d.Took)
		all[i] = d
	}
	for i := range all {
		all[i].Height = barHeight / 3
		if longest > 0 {
			all[i].Height = max(barHeight/3, int(barHeight*all[i].Took/longest))
		}
	}
	return all
}

// bar is a rectangle of the strip above a history.
type bar struct {
	X, Y, Height int
	Class        string
}

// Bars draws the history from left to right: a bar for each row, as high as it took long.
func (p schedulePage) Bars() []bar {
	bars := make([]bar, len(p.History))
	for i, d := range p.History {
		at := len(bars) - 1 - i
		bars[at] = bar{X: 10 * at, Y: barHeight - d.Height, Height: d.Height, Class: d.Class}
	}
	return bars
}

// BarsWidth is the width of the strip.
func (p schedulePage) BarsWidth() int { return 10 * len(p.History) }

// changeSchedule does one thing with one schedule.
func (v *view) changeSchedule() (result, error) {
	name, err := v.nameOf()
	if err != nil {
		return result{}, err
	}
	verb, needs := v.r.PathValue("verb"), access.Operate
	switch verb {
	case verbShow:
		return v.showScheduleBody(name)
	case verbDelete:
		needs = access.Schedule
	}
	do, detail, err := v.scheduleAct(name, verb)
	if err != nil {
		return result{}, err
	}
	ctx := v.onSchedule(needs)
	s, err := v.scheduler.GetSchedule(ctx, name)
	if err != nil {
		return result{}, err
	}
	to := result{to: schedulePath(name) + "?did=" + verb}
	a := audit.Act{Action: audit.Action("schedule." + verb), Target: name, Tag: s.Tag, Detail: detail}
	err = v.audited(ctx, a, func(ctx context.Context) (int, error) {
		more, err := do(ctx)
		if more != "" {
			to.to = more
		}
		return 0, err
	})
	return to, err
}

// scheduleAct returns what an action does, and the detail of it that the audit log has. What is done returns the page
// to go to, "" for that of the schedule.
func (v *view) scheduleAct(name, verb string) (do func(context.Context) (string, error), detail string, err error) {
	plain := func(change func(context.Context, string) error) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return "", change(ctx, name) }
	}
	form := v.r.PostForm
	switch verb {
	case "pause":
		reason := form.Get("reason")
		return func(ctx context.Context) (string, error) {
			return "", v.scheduler.PauseSchedule(ctx, name, reason)
		}, reason, nil
	case "resume":
		return plain(v.scheduler.ResumeSchedule), "", nil
	case "reset":
		return plain(v.scheduler.ResetSchedule), "", nil
	case "skip":
		return plain(func(ctx context.Context, name string) error {
			_, err := v.scheduler.SkipTick(ctx, name)
			return err
		}), "", nil
	case "run":
		beside := form.Get("beside") != ""
		if beside {
			detail = "beside"
		}
		return func(ctx context.Context) (string, error) {
			id, err := v.scheduler.TriggerSchedule(ctx, name, beside)
			return fmt.Sprintf("%s?did=run&run=%d", schedulePath(name), id), err
		}, detail, nil
	case "backfill":
		return v.backfill(name)
	case verbDelete:
		return func(ctx context.Context) (string, error) {
			return "schedules?deleted=1", v.scheduler.DeleteSchedule(ctx, name)
		}, "", nil
	default:
		return nil, "", errNoPage
	}
}

// backfill reads the range of the form.
func (v *view) backfill(name string) (do func(context.Context) (string, error), detail string, err error) {
	form := v.r.PostForm
	from, err := v.timeOf("from", form.Get("from"))
	if err != nil {
		return nil, "", err
	}
	to, err := v.timeOf("to", form.Get("to"))
	if err != nil {
		return nil, "", err
	}
	atOnce, err := strconv.Atoi(form.Get("at_once"))
	if err != nil {
		return nil, "", invalid{field: "at_once", want: "want.number"}
	}
	detail = from.UTC().Format(time.RFC3339) + " to " + to.UTC().Format(time.RFC3339)
	return func(ctx context.Context) (string, error) {
		child, err := v.scheduler.Backfill(ctx, name, from, to, atOnce)
		return schedulePath(child) + "?did=backfill", err
	}, detail, nil
}

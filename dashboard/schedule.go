package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/wire"
)

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
	verbDelete   = "delete"
)

// nameOf reads the name in the path. It returns ErrScheduleNotFound for one that no schedule has.
func (v *view) nameOf() (string, error) {
	name := wire.FromSegment(v.r.PathValue("name"))
	if !delaytask.ValidTag(name) { // names have the characters of tags
		return "", delaytask.ErrScheduleNotFound
	}
	return name, nil
}

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
	ctx, look := v.r.Context(), v.look()
	seen, err := look.Schedule(ctx, name)
	if err != nil {
		return nil, err
	}
	s := seen.Schedule
	shown := schedulePage{
		Schedule: s, Body: seen.Bytes, Overdue: v.overdue(&s), First: before.IsZero(), Asked: asked,
	}
	if did := v.did.Get("did"); texts["schedule.did."+did] != nil {
		shown.Did = did
	}
	shown.Schedule.Body = nil
	shown.Run, _ = strconv.ParseInt(v.did.Get("run"), 10, 64)
	if s.State == delaytask.ScheduleActive || s.State == delaytask.SchedulePaused {
		shown.Ticks, shown.Warnings, err = v.upcoming(&s, ticksShown)
		if err != nil {
			shown.Unreadable = err.Error()
		}
	}
	ticks, err := look.Ticks(ctx, name, before, historyShown)
	if err != nil {
		return nil, err
	}
	shown.History = historyOf(ticks, s.NextDue.Sub(s.NextTick))
	shown.Waits = shown.Overdue && s.Overlap != delaytask.OverlapAllow &&
		slices.ContainsFunc(ticks, func(t delaytask.ScheduleTick) bool { return t.Outcome == delaytask.OutcomeOpen })
	if n := len(ticks); n == historyShown {
		shown.Older = query("before", ticks[n-1].Tick.Format(time.RFC3339Nano))
	}
	if !isPart(v.r) {
		why, err := look.ExplainSchedule(ctx, name, asked)
		if err != nil {
			return nil, err
		}
		shown.Why = why.Sentences
	}
	return shown, nil
}

// instant reads a time of the query, or zero. It returns the canonical address for a time of the reader's zone, as a
// form sends it.
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
var classes = map[delaytask.Outcome]string{
	delaytask.OutcomeOpen: "executing", delaytask.OutcomeCompleted: "completed", delaytask.OutcomeFailed: "failed",
	delaytask.OutcomeCancelled: "cancelled", delaytask.OutcomeSkipped: "overdue", delaytask.OutcomeMissed: "overdue",
	delaytask.OutcomeUnknown: "cancelled",
}

func historyOf(ticks []delaytask.ScheduleTick, jitter time.Duration) []decided {
	all := make([]decided, len(ticks))
	var longest time.Duration
	for i, t := range ticks {
		d := decided{ScheduleTick: t, Class: classes[t.Outcome]}
		due := t.Tick.Add(jitter)
		if t.Cause == delaytask.CauseManual {
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
	ctx, form, verb := v.r.Context(), v.r.PostForm, v.r.PathValue("verb")
	to := schedulePath(name) + "?did=" + verb
	switch verb {
	case verbShow:
		return v.showScheduleBody(name)
	case "pause":
		err = v.operator.PauseSchedule(ctx, v.by(), name, delaytask.Reason(form.Get("reason")))
	case "resume":
		err = v.operator.ResumeSchedule(ctx, v.by(), name)
	case "reset":
		err = v.operator.ResetSchedule(ctx, v.by(), name)
	case "skip":
		_, err = v.operator.SkipTick(ctx, v.by(), name)
	case "run":
		var id int64
		id, err = v.operator.TriggerSchedule(ctx, v.by(), name, form.Get("beside") != "")
		to += fmt.Sprint("&run=", id)
	case "backfill":
		name, err = v.backfill(name)
		to = schedulePath(name) + "?did=" + verb
	case verbDelete:
		err = v.operator.DeleteSchedule(ctx, v.by(), name)
		to = "schedules?deleted=1"
	default:
		err = errNoPage
	}
	return result{to: to, did: true}, err
}

// backfill runs the ticks of the form's range, and returns the name of their schedule.
func (v *view) backfill(name string) (string, error) {
	form := v.r.PostForm
	from, err := v.timeOf("from", form.Get("from"))
	if err != nil {
		return "", err
	}
	to, err := v.timeOf("to", form.Get("to"))
	if err != nil {
		return "", err
	}
	atOnce, err := strconv.Atoi(form.Get("at_once"))
	if err != nil {
		return "", invalid{field: "at_once", want: "want.number"}
	}
	return v.operator.Backfill(v.r.Context(), v.by(), name, from, to, atOnce)
}

package dashboard

import (
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

type tagPage struct {
	Tag    string
	Paused bool
	Since  time.Time               // it is paused; zero where that is not known
	By     string                  // who paused it; "" where that is not known
	Reason string                  // of the pause
	Nodes  []report.Node           // live ones that serve it
	Here   *processor.Registration // what it was registered with in this process; nil where it was not
	Counts []statusCount
	Span   string

	NoCounts bool // they cannot be read

	Past   *past // nil where it cannot be read
	NoPast bool
	Late   *histogram // nil where no attempt is known
	Newest bool       // Late is of the newest completed tasks, and not of the span

	Due       *dueChart
	Failures  *report.Failures // nil where the user may not see tasks
	LeftOut   int              // groups that are not shown
	Schedules []tagSchedule
	More      int // schedules that are not shown, of those that were read
	Did       string
}

type tagSchedule struct {
	Name, State, Reason string
	When                []string
	Zone                string
	Next, Success       time.Time
	Failures            int // runs in a row
}

const (
	mostSchedules = 50
	fewGroups     = 10
	newestLate    = 10_000
)

func (v *view) tag() (any, error) {
	tag, err := v.tagOf(access.Observe)
	if err != nil {
		return nil, err
	}
	name, span, err := v.spanOf()
	if err != nil {
		return nil, err
	}
	paused, err := v.paused()
	if err != nil {
		return nil, err
	}
	nodes, err := v.scheduler.Nodes(v.r.Context())
	if err != nil {
		return nil, err
	}
	state := paused[tag]
	shown := tagPage{Tag: tag, Span: name, Paused: state.Paused, Reason: state.Reason, Did: v.did.Get("did")}
	for _, n := range nodes {
		if n.Alive && !n.Leaving && slices.Contains(n.Tags, tag) {
			shown.Nodes = append(shown.Nodes, n)
		}
	}
	if here, registered := core.Of(v.scheduler).Registered(tag); registered {
		shown.Here = &here
	}
	if shown.Counts, err = v.countsOf(tag, v.Statuses()...); v.gone(err) {
		return nil, err
	}
	shown.NoCounts = err != nil
	if err := v.tagParts(&shown, span, row.At(v.Now)); err != nil {
		return nil, err
	}
	return shown, nil
}

// tagParts reads the parts that can be missing by themselves.
func (v *view) tagParts(shown *tagPage, span time.Duration, now row.Time) error {
	tag := shown.Tag
	past, err := v.past(tag, span, now)
	if shown.NoPast = err != nil; v.gone(err) {
		return err
	}
	if shown.Paused && !shown.NoPast {
		pause, err := v.pause(tag, now)
		if v.gone(err) {
			return err
		}
		shown.Since, shown.By = pause.Since.Std(), pause.By
	}
	if err := v.lateness(shown, past); err != nil {
		return err
	}
	if due, err := v.forecast(tag, report.ForecastHour); err == nil {
		chart := newDueChart(&due, due.Total())
		shown.Due = &chart
	} else if v.gone(err) {
		return err
	}
	if !v.Caller.May(access.Read, tag) {
		return nil
	}
	if failed, err := v.failed(tag); err == nil {
		failed.Groups, shown.LeftOut = firstOf(failed.Groups, fewGroups)
		shown.Failures = &failed
	} else if v.gone(err) {
		return err
	}
	found, err := v.schedulesOf(tag)
	shown.Schedules, shown.More = firstOf(found, mostSchedules)
	if v.gone(err) {
		return err
	}
	return nil
}

// Empty reports whether nothing is known of the tag.
func (p tagPage) Empty() bool {
	some := slices.ContainsFunc(p.Counts, func(c statusCount) bool { return c.Tasks > 0 })
	return !some && !p.NoCounts && !p.Paused && len(p.Nodes) == 0 && len(p.Schedules) == 0 && p.Late == nil
}

// Command is the command that shows the same.
func (p tagPage) Command() string {
	return sentence.Command("stats", "since", p.Span, "tag", p.Tag)
}

// past is what has become of a tag's tasks within a span.
type past struct {
	report.Series
	Rows []report.SeriesPoint // its points, or one a day where there are many
	late row.Histogram
	max  time.Duration
}

// Late is the chart of lateness.
func (p *past) Late() seriesChart { return lateChart(p.Series) }

const (
	mostPastRows = 60 // of a table
	day          = 24 * time.Hour
)

// past reads what has become of a tag's tasks.
func (v *view) past(tag string, long time.Duration, now row.Time) (*past, error) {
	key := "past " + long.String() + " " + tag
	return kept(v.r.Context(), v.keep, key, keepHour, func(ctx context.Context) (*past, error) {
		span, to := row.SpanMinute, row.SpanMinute.Begin(now.Add(-rollup.WrittenAfter))
		if long > rollup.KeepMinutes {
			span, to = row.SpanHour, now
		}
		from := span.Begin(to.Add(-long))
		rows, err := v.store.Rollups(ctx, span, []string{tag}, from, to)
		if err != nil {
			return nil, err
		}
		marks, err := v.store.Rollups(ctx, row.SpanMark, nil, from, now)
		if err != nil {
			return nil, err
		}
		return pastOf(tag, span, rows, marks, from, to), nil
	})
}

func pastOf(tag string, span row.RollupSpan, rows, marks []row.Rollup, from, to row.Time) *past {
	merged := rollup.Merge(rows)
	p := &past{Series: rollup.Series(merged, rollup.Marks(marks, tag))}
	p.Span, p.From, p.To = span.Length(), from.Std(), to.Std()
	if p.Rows = p.Points; len(p.Rows) > mostPastRows {
		for i := range merged {
			merged[i].Begin -= merged[i].Begin % row.Time(day.Microseconds())
		}
		merged = rollup.Merge(merged)
		p.Rows = rollup.Series(merged, nil).Points
	}
	for i := range merged {
		merged[i].Begin = from // so that they are merged into one
	}
	for _, sum := range rollup.Merge(merged) {
		p.late, p.max = sum.Late, sum.Max
	}
	return p
}

// pause finds the mark of a pause.
func (v *view) pause(tag string, now row.Time) (rollup.Pause, error) {
	return kept(v.r.Context(), v.keep, "paused "+tag, keepHour, func(ctx context.Context) (rollup.Pause, error) {
		marks, err := v.store.Rollups(ctx, row.SpanMark, []string{tag}, now.Add(-rollup.KeepHours), now)
		return rollup.Pauses(marks)[tag], err
	})
}

// lateness draws how late first attempts started: within the span, or else of the newest completed tasks.
func (v *view) lateness(shown *tagPage, of *past) error {
	if !shown.NoPast {
		shown.Past = of
		if n := of.late.Count(); n > 0 {
			shown.Late = newHistogram(of.late, of.late.Quantile(0.5, of.max), of.late.Quantile(0.99, of.max), of.max)
			return nil
		}
	}
	key := "late " + shown.Tag
	late, err := kept(v.r.Context(), v.keep, key, keepSamples, func(ctx context.Context) (*histogram, error) {
		samples, err := v.store.Lateness(ctx, []string{shown.Tag}, 0, newestLate)
		if err != nil || len(samples) == 0 {
			return nil, err
		}
		all := make([]time.Duration, len(samples))
		for i, s := range samples {
			all[i] = max(s.Late, 0)
		}
		return histogramOf(all), nil
	})
	if v.gone(err) {
		return err
	}
	shown.Late, shown.Newest = late, true
	return nil
}

// schedulesOf reads the schedules of a tag, and one more than are shown.
func (v *view) schedulesOf(tag string) ([]tagSchedule, error) {
	key := "schedules " + tag
	return kept(v.r.Context(), v.keep, key, keepListed, func(ctx context.Context) (all []tagSchedule, err error) {
		f := row.ScheduleFilter{Tag: tag, Limit: mostSchedules + 1, NoBodies: true}
		found, _, err := v.store.Schedules(ctx, f)
		for i := range found {
			s := &found[i]
			one := tagSchedule{
				Name: s.Name, State: s.State.String(), Reason: v.ShortReason(tag, s.Reason), Next: s.Next.Std(),
				Success: s.Success.Std(), Failures: s.Failures, When: []string{s.Spec},
			}
			if read, err := spec.ParseText(s.Spec); err == nil {
				one.When, one.Zone = read.Definition().Lines, read.Definition().Zone
			}
			all = append(all, one)
		}
		return all, err
	})
}

// tagOf reads the tag in the path, once the user may do it with the tag.
func (v *view) tagOf(verb access.Verb) (string, error) {
	tag := wire.FromSegment(v.r.PathValue("tag"))
	if !delaytask.ValidTag(tag) {
		return "", errNoPage
	}
	return tag, v.allow(verb, tag)
}

// changeTag pauses or resumes a tag.
func (v *view) changeTag() (result, error) {
	tag, verb := wire.FromSegment(v.r.PathValue("tag")), v.r.PathValue("verb")
	err, did, met := errNoPage, verb, operate.TagMet{}
	switch valid := delaytask.ValidTag(tag); {
	case valid && verb == "pause":
		met, err = v.operator.PauseTag(v.r.Context(), v.by(), tag, delaytask.Reason(v.r.PostForm.Get("reason")))
	case valid && verb == "resume":
		_, err = v.operator.ResumeTag(v.r.Context(), v.by(), tag)
	}
	if err != nil {
		return result{}, err
	}
	if met.Unseen {
		did = "unseen"
	}
	if v.r.PostForm.Get("from") == "tags" {
		return result{to: "tags?" + query("did", did, "tag", tag), did: true}, nil
	}
	return result{to: "tags/" + wire.Segment(tag) + "?did=" + did, did: true}, nil
}

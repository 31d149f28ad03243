package operate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/report"
)

// Tags lists the tags that are served or paused and that the caller may read.
func (v *View) Tags(ctx context.Context) ([]report.TagState, error) {
	if err := v.Allow(access.Read, ""); err != nil {
		return nil, err
	}
	tags, err := v.o.Core.Tags(ctx)
	for i := range tags {
		tags[i].Reason = v.Text(tags[i].Tag, tags[i].Reason)
	}
	return only(tags, func(t report.TagState) bool { return v.May(access.Read, t.Tag) }), err
}

// only leaves out the rest.
func only[T any](all []T, seen func(T) bool) []T {
	return slices.DeleteFunc(all, func(one T) bool { return !seen(one) })
}

func (v *View) observes(tag string) bool { return v.May(access.Observe, tag) }

// Lateness says how late tasks of the tag started. It takes the verb read.
func (v *View) Lateness(ctx context.Context, tag string, window time.Duration) (l report.Lateness, err error) {
	if err := v.Allow(access.Read, tag); err != nil {
		return l, err
	}
	return v.o.Core.Lateness(ctx, tag, window)
}

// Stats counts tasks. It and all that follow take the verb observe, and leave out tags that the caller has it not for.
func (v *View) Stats(ctx context.Context) ([]report.TagStats, error) {
	if err := v.Allow(access.Observe, ""); err != nil {
		return nil, err
	}
	stats, err := v.o.Core.Stats(ctx)
	return only(stats, func(t report.TagStats) bool { return v.observes(t.Tag) }), err
}

// StatsAfter is Stats of at most so many tags after the one, and the last of these where there are more.
func (v *View) StatsAfter(ctx context.Context, after string, most int) (
	page []report.TagStats, next string, err error,
) {
	stats, err := v.Stats(ctx)
	begin, found := slices.BinarySearchFunc(stats, after, func(s report.TagStats, tag string) int {
		return strings.Compare(s.Tag, tag)
	})
	if found {
		begin++
	}
	if page = stats[begin:]; len(page) > most {
		page = slices.Clone(page[:most])
		next = page[most-1].Tag
	}
	return page, next, err
}

// Nodes lists the processes. It also returns the token of each, which the executors of its tasks hold.
func (v *View) Nodes(ctx context.Context) (nodes []report.Node, tokens []string, err error) {
	if err := v.Allow(access.Observe, ""); err != nil {
		return nil, nil, err
	}
	nodes, tokens, err = v.o.Core.Nodes(ctx)
	for i := range nodes {
		n := &nodes[i]
		n.Tags = only(n.Tags, v.observes)
		n.Shares = only(n.Shares, func(s report.Share) bool { return v.observes(s.Tag) })
	}
	return nodes, tokens, err
}

// Series returns what was counted over time. All tags together take the right for all tags.
func (v *View) Series(ctx context.Context, f report.SeriesFilter) (s report.Series, err error) {
	if err := v.MayObserve(f.Tag); err != nil {
		return s, err
	}
	return v.o.Core.Series(ctx, f)
}

// MayObserve returns an error for a caller that may not observe the tag, or all tags when it is "".
func (v *View) MayObserve(tag string) error {
	if err := v.Allow(access.Observe, tag); err != nil {
		return err
	}
	if tag == "" && !v.AnyTag(access.Observe) {
		return errObserve
	}
	return nil
}

// Forecast returns what is overdue and what falls due.
func (v *View) Forecast(ctx context.Context, f report.ForecastFilter) (found report.Forecast, err error) {
	if err := v.Allow(access.Observe, f.Tag); err != nil {
		return found, err
	}
	if found, err = v.o.Core.Forecast(ctx, f); err == nil {
		found = v.SeenForecast(found)
	}
	return found, err
}

// SeenForecast is Forecast for one that was read, which it does not change.
func (v *View) SeenForecast(read report.Forecast) report.Forecast {
	read.Tags = only(slices.Clone(read.Tags), func(t report.TagForecast) bool { return v.observes(t.Tag) })
	return read
}

// Overview says what needs attention, and how all tags stand. It has errors of tags that the caller may also read, and
// locks and stacks for one that observes all tags. It lists so many tags and findings at most; 0: all.
func (v *View) Overview(ctx context.Context, tags, findings int) (o report.Overview, err error) {
	if err := v.Allow(access.Observe, ""); err != nil {
		return o, err
	}
	f := report.OverviewFilter{
		Errors: func(tag string) bool { return v.May(access.Read, tag) }, MostTags: tags, MostFindings: findings,
	}
	if !v.AnyTag(access.Observe) {
		f.Sees = v.observes
	}
	o, err = v.o.Core.Overview(ctx, f)
	for i := range o.Attention {
		f, m := &o.Attention[i], v.masking(o.Attention[i].Tag)
		f.Text, f.Error = m.text(f.Text), m.text(f.Error)
	}
	for i := range o.Tags {
		o.Tags[i].Reason = v.Text(o.Tags[i].Tag, o.Tags[i].Reason)
	}
	return o, err
}

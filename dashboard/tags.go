package dashboard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/audit"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/listing"
	"github.com/delaytask/delaytask/internal/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/processor"
)

// mostTags is how many tags the page lists.
const mostTags = 500

// tagsPage is all tags that the user sees.
type tagsPage struct {
	Tags   []tagRow
	More   int // that are left out
	Did    string
	Tag    string // that it was done with
	NoHour bool   // what was counted over time cannot be read
	NoDue  bool   // the forecast cannot be read
}

// tagRow is one of them.
type tagRow struct {
	Tag    string
	Paused bool
	Nodes  []string // that serve it
	Counts []statusCount
	Hour   *tagHour               // nil: nothing was counted
	Due    *delaytask.TagForecast // nil: nothing is or falls due
	Next   delaytask.DueTasks     // of the next hour
}

// statusCount is how many tasks a tag has in a status.
type statusCount struct {
	Status delaytask.Status
	Tasks  int64
	More   bool // than that
}

// clusterState is which nodes live, and which tags are paused.
type clusterState struct {
	now    row.Time
	nodes  []row.Node // that live and are not leaving
	paused map[string]bool
}

func (v *view) clusterState() (clusterState, error) {
	nodes, reading, err := v.store.Nodes(v.r.Context())
	if err != nil {
		return clusterState{}, err
	}
	tags, _, err := v.store.Tags(v.r.Context())
	if err != nil {
		return clusterState{}, err
	}
	s := clusterState{now: reading.Time, paused: map[string]bool{}}
	for _, n := range nodes {
		if !n.Leaving && reading.Time.Sub(n.Heartbeat) <= cluster.LeaseTime {
			s.nodes = append(s.nodes, n)
		}
	}
	for _, t := range tags {
		s.paused[t.Tag] = t.Paused
	}
	return s, nil
}

// tags shows all tags.
func (v *view) tags() (any, error) {
	now, err := v.clusterState()
	if err != nil {
		return nil, err
	}
	counts, err := v.counts()
	if err != nil {
		return nil, err
	}
	all := v.tagRows(&now, counts)
	query := v.r.URL.Query()
	shown := tagsPage{Did: query.Get("did"), Tag: query.Get("tag"), More: max(len(all)-mostTags, 0)}
	hour, err := v.hour(now.now)
	if shown.NoHour = err != nil; v.gone(err) {
		return nil, err
	}
	due, err := v.forecast("", delaytask.ForecastHour)
	if shown.NoDue = err != nil; v.gone(err) {
		return nil, err
	}
	for _, tag := range slices.Sorted(maps.Keys(all))[:len(all)-shown.More] {
		t := all[tag]
		t.Hour = hour[tag]
		if i, found := slices.BinarySearchFunc(due.Tags, tag, func(f delaytask.TagForecast, tag string) int {
			return cmp.Compare(f.Tag, tag)
		}); found {
			t.Due, t.Next = &due.Tags[i], due.Tags[i].Sum()
		}
		shown.Tags = append(shown.Tags, *t)
	}
	return shown, nil
}

// counts counts the tasks of all tags. Those that have ended are many, and change little in proportion.
func (v *view) counts() ([]listing.TagCount, error) {
	count := func(key string, long time.Duration, statuses ...row.Status) ([]listing.TagCount, error) {
		return kept(v, key, long, func(ctx context.Context) ([]listing.TagCount, error) {
			return listing.Counts(ctx, v.store, listing.MostCounted, statuses...)
		})
	}
	open, err := count("counts", keepCounts, row.Pending, row.Executing, row.Failed)
	if err != nil {
		return nil, err
	}
	ended, err := count("counts of ended", keepEnded, row.Completed, row.Cancelled)
	return slices.Concat(open, ended), err
}

// gone reports whether an error is not of one part of a page alone. It logs one that is.
func (v *view) gone(err error) bool {
	if err == nil {
		return false
	}
	if v.r.Context().Err() != nil || errors.Is(err, errSlow) {
		return true
	}
	v.log.Warn("dashboard: a part of a page could not be read", "path", v.Path, "err", err)
	return false
}

// tagRows makes a row of each tag that has tasks, is served or is paused, and that the user sees.
func (v *view) tagRows(now *clusterState, counts []listing.TagCount) map[string]*tagRow {
	all := map[string]*tagRow{}
	of := func(tag string) *tagRow {
		if t := all[tag]; t != nil || !v.Caller.May(access.Observe, tag) {
			return t
		}
		t := &tagRow{Tag: tag, Paused: now.paused[tag], Counts: make([]statusCount, 0, len(v.Statuses()))}
		for _, status := range v.Statuses() {
			t.Counts = append(t.Counts, statusCount{Status: status})
		}
		all[tag] = t
		return t
	}
	for _, n := range now.nodes {
		for _, tag := range n.Tags {
			if t := of(tag); t != nil {
				t.Nodes = append(t.Nodes, n.Name)
			}
		}
	}
	for tag, paused := range now.paused {
		if paused {
			of(tag)
		}
	}
	for _, c := range counts {
		t := of(c.Tag)
		i := slices.Index(v.Statuses(), delaytask.Status(c.Status.String()))
		if t != nil && i >= 0 {
			t.Counts[i].Tasks += c.Count
			t.Counts[i].More = t.Counts[i].More || c.Capped
		}
	}
	return all
}

const (
	sparkStep  = 5 * time.Minute
	sparkSteps = 12
	// writtenAfter is how long after the end of a minute all processes have written it.
	writtenAfter = 12 * time.Second
)

// tagHour is what has become of a tag's tasks within the last hour.
type tagHour struct {
	Started, Completed, Failed int64
	P50, P99                   time.Duration
	ended, failed              [sparkSteps]int64
}

// hour reads the last hour of all tags at once.
func (v *view) hour(now row.Time) (map[string]*tagHour, error) {
	return kept(v, "hour", keepHour, func(ctx context.Context) (map[string]*tagHour, error) {
		until := row.SpanMinute.Begin(now.Add(-writtenAfter))
		from := until.Add(-sparkStep * sparkSteps)
		rows, err := v.store.Rollups(ctx, row.SpanMinute, nil, from, until)
		if err != nil {
			return nil, err
		}
		byTag := map[string][]row.Rollup{}
		for _, r := range rows {
			byTag[r.Tag] = append(byTag[r.Tag], r)
		}
		hours := make(map[string]*tagHour, len(byTag))
		for tag, minutes := range byTag {
			hours[tag] = hourOf(minutes, from)
		}
		return hours, nil
	})
}

// hourOf adds up the minutes of all processes.
func hourOf(minutes []row.Rollup, from row.Time) *tagHour {
	h := &tagHour{}
	for i := range minutes {
		m := &minutes[i]
		if step := m.Begin.Sub(from) / sparkStep; step >= 0 && step < sparkSteps {
			h.ended[step] += m.Completed + m.Failed
			h.failed[step] += m.Failed
		}
		m.Begin = from // so that they are merged into one
	}
	for _, sum := range rollup.Merge(minutes) {
		h.Started, h.Completed, h.Failed = sum.Late.Count(), sum.Completed, sum.Failed
		h.P50, h.P99 = sum.Late.Quantile(0.5, sum.Max), sum.Late.Quantile(0.99, sum.Max)
	}
	return h
}

// Ended draws what has ended in each part of the hour.
func (h *tagHour) Ended() string { return spark(h.ended[:], slices.Max(h.ended[:])) }

// Fails draws what of it has failed, in the same scale.
func (h *tagHour) Fails() string { return spark(h.failed[:], slices.Max(h.ended[:])) }

// Coming draws what falls due in each part of the next hour.
func (t *tagRow) Coming() string {
	if t.Due == nil {
		return ""
	}
	steps := make([]int64, sparkSteps)
	for i, due := range t.Due.Due {
		steps[i*sparkSteps/len(t.Due.Due)] += due.Tasks
	}
	return spark(steps, slices.Max(steps))
}

// forecast reads what falls due. A tag that the user may not see is left out of it.
func (v *view) forecast(tag string, span time.Duration) (delaytask.Forecast, error) {
	key := "forecast " + span.String() + " " + tag
	found, err := kept(v, key, keepForecast, func(ctx context.Context) (delaytask.Forecast, error) {
		return v.scheduler.Forecast(ctx, delaytask.ForecastFilter{Tag: tag, Span: span})
	})
	if err != nil {
		return delaytask.Forecast{}, err
	}
	all := found.Tags
	found.Tags = nil
	for _, t := range all {
		if v.Caller.May(access.Observe, t.Tag) {
			found.Tags = append(found.Tags, t)
		}
	}
	return found, nil
}

// Figure writes a number with the sign of what it is worth.
func (v *view) Figure(d delaytask.DueTasks) string {
	return map[processor.Precision]string{processor.About: "≈", processor.AtLeast: "≥"}[d.Precision] + v.N(d.Tasks)
}

// tagOf reads the tag in the path, once the user may do it with the tag.
func (v *view) tagOf(verb access.Verb) (string, error) {
	tag := v.r.PathValue("tag")
	if !processor.ValidTag(tag) {
		return "", errNoPage
	}
	return tag, v.allow(verb, tag)
}

// changeTag pauses or resumes a tag.
func (v *view) changeTag() (result, error) {
	tag, err := v.tagOf(access.Operate)
	if err != nil {
		return result{}, err
	}
	verb := v.r.PathValue("verb")
	var set func(context.Context, string) error
	switch verb {
	case "pause":
		set = v.scheduler.Pause
	case "resume":
		set = v.scheduler.Resume
	default:
		return result{}, errNoPage
	}
	a := audit.Act{Action: audit.Action("tag." + verb), Target: tag, Tag: tag}
	err = v.audited(v.r.Context(), a, func(ctx context.Context) (int, error) { return 0, set(ctx, tag) })
	if err != nil {
		return result{}, err
	}
	if v.r.PostForm.Get("from") == "tags" {
		return result{to: "tags?" + query("did", verb, "tag", tag)}, nil
	}
	return result{to: "tags/" + url.PathEscape(tag) + "?did=" + verb}, nil
}

// Joined lists names in a line.
func (*view) Joined(names []string) string { return strings.Join(names, ", ") }

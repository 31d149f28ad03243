package dashboard

import (
	"context"
	"net/url"
	"time"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/report"
)

// loadPage is what is overdue and what falls due, of the tags that the user sees.
type loadPage struct {
	Span  string
	Tag   string
	Known []string
	Chart dueChart
	Tags  []tagLoad
}

type tagLoad struct {
	report.TagForecast
	Sum  report.DueTasks
	Peak report.DueTasks
	At   time.Time // of the peak
}

// spans are the spans of forecasts and of series, by their names in addresses.
var spans = map[string]time.Duration{
	"1h": report.ForecastHour, "24h": report.ForecastDay, "30d": report.ForecastMonth,
}

// Spans lists the names of spans, the shortest first.
func (*view) Spans() []string { return []string{"1h", "24h", "30d"} }

// spanOf reads which span is asked for, and the default when none is.
func (v *view) spanOf() (name string, span time.Duration, err error) {
	if name = v.r.URL.Query().Get("span"); name == "" {
		name = v.Spans()[0]
	}
	span, known := spans[name]
	if !known {
		return "", 0, invalid{field: "span", want: "want.span"}
	}
	return name, span, nil
}

// oneTag reads the tag that the query names, "" for all, once the user may.
func (v *view) oneTag(verb access.Verb) (string, error) {
	tag := v.r.URL.Query().Get("tag")
	clean := url.Values{}
	if tag != "" {
		clean.Set("tag", tag)
	}
	if err := v.canonically(clean); err != nil || tag == "" {
		return "", err
	}
	return tag, v.allow(verb, tag)
}

// load shows what falls due.
func (v *view) load() (any, error) {
	name, span, err := v.spanOf()
	if err != nil {
		return nil, err
	}
	tag, err := v.oneTag(access.Observe)
	if err != nil {
		return nil, err
	}
	shown := loadPage{Span: name, Tag: tag}
	if !isPart(v.r) {
		shown.Known = v.knownTags()
	}
	found, err := v.forecast(tag, span)
	if err != nil {
		return nil, err
	}
	shown.Chart = newDueChart(&found, found.Total())
	for _, t := range found.Tags {
		load := tagLoad{TagForecast: t, Sum: t.Sum()}
		for i, due := range t.Due {
			if due.Tasks > load.Peak.Tasks {
				load.Peak, load.At = due, found.Start.Add(time.Duration(i)*found.Step)
			}
		}
		shown.Tags = append(shown.Tags, load)
	}
	return shown, nil
}

// forecast reads what falls due. A tag that the user may not see is left out of it.
func (v *view) forecast(tag string, span time.Duration) (report.Forecast, error) {
	key := "forecast " + span.String() + " " + tag
	found, err := kept(v.r.Context(), v.keep, key, keepForecast, func(ctx context.Context) (report.Forecast, error) {
		return v.scheduler.Forecast(ctx, report.ForecastFilter{Tag: tag, Span: span})
	})
	return v.look().SeenForecast(found), err
}

// Command is the command that shows the same.
func (p loadPage) Command() string {
	return sentence.Command("forecast", "span", p.Span, "tag", p.Tag)
}

package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Series returns results and lateness over time, of all processes together, and what may explain them. All tags
// together are for a token that may observe all tags.
//
// It returns [delaytask.ErrInvalidTag], and [delaytask.ErrInvalidOption] for an invalid time.
func (c *Client) Series(ctx context.Context, f report.SeriesFilter) (report.Series, error) {
	if err := c.enter(ctx); err != nil {
		return report.Series{}, err
	}
	if f.Since < 0 {
		return report.Series{}, fmt.Errorf("%w: since is %v, want more than 0", delaytask.ErrInvalidOption, f.Since)
	}
	q := url.Values{}
	if f.Tag != "" {
		q.Set("tag", f.Tag)
	}
	if f.Since > 0 {
		q.Set("since", strconv.FormatInt(max(f.Since.Milliseconds(), 1), 10))
	}
	for name, at := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !at.IsZero() {
			q.Set(name, since1970(at).UTC().Format(time.RFC3339Nano))
		}
	}
	var answer wire.Series
	r := &httpCall{
		method: http.MethodGet, path: "/v1/series?" + q.Encode(), into: &answer, limit: listAnswer, again: true,
	}
	if _, err := c.call(ctx, r); err != nil {
		return report.Series{}, fmt.Errorf("read lateness and results over time: %w", err)
	}
	return series(&answer), nil
}

func series(s *wire.Series) report.Series {
	all := report.Series{
		Span: millis(s.SpanMS), From: s.From.Std(), To: s.To.Std(),
	}
	for _, p := range s.Points {
		point := report.SeriesPoint{
			Start: p.Start.Std(), Completed: p.Completed, Retried: p.Retried, Failed: p.Failed, Lost: p.Lost,
		}
		if l := p.Lateness; l != nil {
			point.Started = l.Samples
			point.P50, point.P99, point.Max = exact(l.P50), exact(l.P99), exact(l.Max)
		}
		all.Points = append(all.Points, point)
	}
	for _, m := range s.Marks {
		all.Marks = append(all.Marks, report.SeriesMark{
			Time: m.Time.Std(), Kind: report.MarkKind(m.Kind), Name: m.Name, Tag: m.Tag,
		})
	}
	return all
}

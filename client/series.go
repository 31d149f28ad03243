package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
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
		q.Set("since", wire.FormatDuration(max(f.Since, time.Millisecond)))
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
	return answer.To(), nil
}

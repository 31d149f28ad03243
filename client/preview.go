package client

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// earliest is before all ticks. Texts of times may be too early for what is before it.
var earliest = time.Unix(0, 0)

// since1970 is the earliest time instead of one that is before.
func since1970(t time.Time) time.Time {
	if t.Before(earliest) {
		return earliest
	}
	return t
}

// Preview returns the next n ticks of a spec after a moment, up to 1,000, and warnings of what a line may mean
// unexpectedly. Between the ticks are those that the DST rule drops, which are not counted. Times have the offset of
// the spec's zone, but not its name. The service decides by its own zone data, stores nothing, and asks for no right.
//
// It returns [delaytask.ErrInvalidSpec] with a [delaytask.SpecError].
func (c *Client) Preview(
	ctx context.Context, spec delaytask.Spec, after time.Time, n int,
) (ticks []delaytask.Tick, warnings []string, err error) {
	if err := c.enter(ctx); err != nil {
		return nil, nil, err
	}
	if n < 1 {
		return nil, nil, fmt.Errorf("%w: count: want 1 or more, got %d", delaytask.ErrInvalidOption, n)
	}
	after = since1970(after)
	body := wire.Preview{Spec: wire.FromSpec(&spec), After: (*wire.Moment)(&after), Count: n}
	var answer wire.Ticks
	r := &httpCall{method: http.MethodPost, path: "/v1/schedules/preview", body: body, into: &answer, again: true}
	if _, err := c.call(ctx, r); err != nil {
		return nil, nil, fmt.Errorf("preview: %w", err)
	}
	if ticks, warnings, err = answer.To(); err != nil {
		err = fmt.Errorf("preview: the answer is not one of this service: %w", err)
	}
	return ticks, warnings, err
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// SaveDelayTask stores a task of the tag that is due after the delay, and returns its id once it is committed. The delay counts
// from when the service has accepted the task.
//
// The body is encoded as the library does it: a []byte, a string and a json.RawMessage are taken as they are, anything else is
// marshalled. What comes out must be JSON, or empty.
//
// It returns an error about the arguments (nothing is sent then, or stored); [processor.ErrDuplicate] together with the id
// of the unfinished task that carries the key; [processor.ErrOverloaded]; or [processor.ErrOutcomeUnknown] when ctx or the
// patience ended before the outcome was known: save again with the id that [processor.OutcomeUnknownError] holds, which is
// safe.
func (c *Client) SaveDelayTask(
	ctx context.Context, tag string, body any, delay time.Duration, opts ...processor.Option,
) (int64, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	save, err := c.newSave(tag, body, delay, opts)
	if err != nil {
		return 0, err
	}
	var saved wire.Saved
	r := &request{method: http.MethodPost, path: "/v1/tasks", body: save, into: &saved, limit: tasks(1), again: true}
	if unclear, err := c.call(ctx, r); err != nil {
		return 0, saveError(err, unclear, int64(save.ID))
	}
	if saved.Duplicate {
		return int64(saved.ID), fmt.Errorf("save: %w", &processor.DuplicateError{ID: int64(saved.ID)})
	}
	return int64(saved.ID), nil
}

// saveError says what is known of a save that was not confirmed.
func saveError(err error, unclear bool, id int64) error {
	if e, ok := errors.AsType[*Error](err); ok {
		switch {
		case e.Status == http.StatusBadRequest, e.Status == http.StatusConflict, e.Status == http.StatusUnprocessableEntity,
			e.Status == http.StatusRequestEntityTooLarge:
			unclear = false // so it was the first time
		case e.Code == wire.CodeOutcomeUnknown:
			unclear = true
		}
		if e.Code == wire.CodeInvalidJSON {
			err = fmt.Errorf("%w: %w", processor.ErrInvalidBody, err)
		}
	}
	if unclear {
		return &processor.OutcomeUnknownError{ID: id, Err: err}
	}
	return fmt.Errorf("save: %w", err)
}

// newSave checks all that can be known to be wrong before the service is asked.
func (c *Client) newSave(tag string, body any, delay time.Duration, opts []processor.Option) (*wire.Save, error) {
	s, err := processor.NewSave(tag, body, delay, processor.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return nil, err
	}
	switch {
	case s.ID == 0:
		s.ID = NewID()
	case !cluster.Valid(s.ID):
		return nil, fmt.Errorf("%w: got %d", processor.ErrInvalidID, s.ID)
	}
	if len(s.Body) > 0 && !json.Valid(s.Body) {
		return nil, fmt.Errorf("%w: the service takes JSON; pass a value, or a text as JSON", processor.ErrInvalidBody)
	}
	return wireSave(&s), nil
}

func wireSave(s *processor.Save) *wire.Save {
	w := &wire.Save{
		Tag: s.Tag, App: s.Headers[processor.AppHeader], Body: s.Body, Key: s.Key, ID: wire.ID(s.ID), TTR: wire.Duration(s.TTR),
		MaxAttempts: s.MaxAttempts, NoAttemptLimit: s.Unlimited, Priority: s.Priority, Headers: withoutApp(s.Headers),
	}
	if s.Delay > 0 {
		delay := wire.Duration(s.Delay)
		w.Delay = &delay
	}
	if !s.At.IsZero() {
		w.At = wireTime(s.At)
	}
	if s.MaxLate > 0 {
		w.MaxLateness, w.LatePolicy = wire.Duration(s.MaxLate), latePolicies[s.LatePolicy]
	}
	return w
}

// withoutApp takes the header out that has a field of its own.
func withoutApp(headers map[string]string) map[string]string {
	if _, has := headers[processor.AppHeader]; !has {
		return headers
	}
	rest := maps.Clone(headers)
	delete(rest, processor.AppHeader)
	return rest
}

// wireTime rounds up to the millisecond that goes over the wire: never early.
func wireTime(t time.Time) *wire.Moment {
	rounded := t.Truncate(time.Millisecond)
	if rounded.Before(t) {
		rounded = rounded.Add(time.Millisecond)
	}
	at := wire.Moment(rounded)
	return &at
}

var latePolicies = map[processor.LatePolicy]string{
	processor.LateRun:  "run",
	processor.LateSkip: "skip",
	processor.LateFail: "fail",
}

package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// SaveSchedule stores a schedule: a task of the tag with the body runs at each tick of the spec. A schedule of the name
// gets this definition: what is planted and has not begun is planted anew, and nothing that was due before runs at
// once. Saving the definition that is stored already writes nothing.
//
// It returns [delaytask.ErrInvalidScheduleName], [delaytask.ErrInvalidSpec] with a [delaytask.SpecError], what
// SaveDelayTask returns for the tag, the body and the options, [delaytask.ErrScheduleOwned] when a program declares a
// schedule of the name, [delaytask.ErrScheduleState] when a backfill has it, [delaytask.ErrScheduleExists] with
// [delaytask.WithIfNew], [delaytask.ErrScheduleChanged] with [delaytask.WithIfVersion], and [ErrNoAnswer].
func (c *Client) SaveSchedule(
	ctx context.Context, name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
) (delaytask.Schedule, error) {
	s, err := request.NewSchedule(name, when, tag, body, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return delaytask.Schedule{}, err
	}
	var answer wire.Schedule
	r := &httpCall{method: http.MethodPut, body: wire.FromScheduleSave(&s), into: &answer, limit: tasks(1),
		header: map[string]string{}, again: !s.Settings.IfNew} // the second would meet the first
	if s.Settings.IfNew {
		r.header["If-None-Match"] = "*"
	}
	if v := s.Settings.IfVersion; v != nil {
		r.header["If-Match"] = strconv.Quote(strconv.FormatInt(*v, 10))
	}
	err = c.onSchedule(ctx, name, "save", r)
	return answer.To(), err
}

// GetSchedule returns a schedule. Times are to the millisecond. It returns [delaytask.ErrScheduleNotFound] when no
// schedule has the name, or when the token may not read it.
func (c *Client) GetSchedule(ctx context.Context, name string) (delaytask.Schedule, error) {
	var answer wire.Schedule
	r := &httpCall{method: http.MethodGet, into: &answer, limit: tasks(1), again: true}
	err := c.onSchedule(ctx, name, "get", r)
	return answer.To(), err
}

// ListSchedules returns the schedules that match and that the token may read, page by page and by name. A page ends at
// 16 MiB of bodies, but has at least one schedule. It returns [delaytask.ErrInvalidOption] when the limit is out of
// range.
func (c *Client) ListSchedules(ctx context.Context, f delaytask.ScheduleFilter) (delaytask.SchedulePage, error) {
	q := url.Values{"limit": {strconv.Itoa(f.Limit)}, "bodies": {strconv.FormatBool(!f.NoBodies)}}
	for name, value := range map[string]string{"prefix": f.Prefix, "owner": f.Owner, "after": f.AfterName} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var answer wire.SchedulePage
	if err := c.enter(ctx); err != nil {
		return delaytask.SchedulePage{}, err
	}
	r := &httpCall{method: http.MethodGet, path: "/v1/schedules?" + q.Encode(), into: &answer, limit: largestAnswer,
		again: true}
	if _, err := c.call(ctx, r); err != nil {
		return delaytask.SchedulePage{}, fmt.Errorf("list schedules: %w", err)
	}
	return answer.To(), nil
}

// PauseSchedule stops a schedule until [Client.ResumeSchedule]. A run that is planted and has not begun is withdrawn,
// and one that executes goes on. Ticks of the pause do not count as missed. It returns [delaytask.ErrScheduleNotFound],
// [delaytask.ErrScheduleState] for a schedule that has ended, and [ErrNoAnswer].
func (c *Client) PauseSchedule(ctx context.Context, name string, opts ...delaytask.PauseOption) error {
	pause, err := request.NewPause(opts...)
	if err != nil {
		return err
	}
	return c.onSchedule(ctx, name, "pause", &httpCall{method: http.MethodPost, path: "/pause",
		body: wire.Pause(pause), again: true})
}

// ResumeSchedule ends a pause. The schedule goes on with the first tick that is to come, a backfill where it was. It
// returns [delaytask.ErrScheduleNotFound], [delaytask.ErrScheduleState] for a schedule that is not paused, and
// [ErrNoAnswer].
func (c *Client) ResumeSchedule(ctx context.Context, name string) error {
	return c.onSchedule(ctx, name, "resume", &httpCall{method: http.MethodPost, path: "/resume"})
}

// ResetSchedule sets the schedule to its first tick that is to come, whatever was decided: for a database whose clock
// was ahead. It returns [delaytask.ErrScheduleNotFound], [delaytask.ErrScheduleState] for a backfill, and
// [ErrNoAnswer].
func (c *Client) ResetSchedule(ctx context.Context, name string) error {
	return c.onSchedule(ctx, name, "reset", &httpCall{method: http.MethodPost, path: "/reset", again: true})
}

// SkipTick decides that the next tick of a schedule does not run, and returns it. It returns
// [delaytask.ErrScheduleNotFound], [delaytask.ErrScheduleState] when no tick is to come, and [ErrNoAnswer]. After that
// compare NextTick of [Client.GetSchedule]: a second call leaves out one more tick.
func (c *Client) SkipTick(ctx context.Context, name string) (time.Time, error) {
	var skipped wire.ScheduleSkipped
	err := c.onSchedule(ctx, name, "skip a tick of", &httpCall{method: http.MethodPost, path: "/skip", into: &skipped})
	return skipped.Tick.Std(), err
}

// TriggerSchedule runs the schedule once, now and in any state, and returns the id of the run. Its ticks stay as they
// are. It returns [delaytask.ErrScheduleNotFound], [delaytask.ErrScheduleBusy] while a run executes, unless the new run
// may be open beside it, and [ErrNoAnswer]. After that look at [Client.ScheduleTicks]: a second call may run it twice.
func (c *Client) TriggerSchedule(ctx context.Context, name string, beside bool) (id int64, err error) {
	var triggered wire.ScheduleTriggered
	err = c.onSchedule(ctx, name, "trigger", &httpCall{method: http.MethodPost, path: "/trigger",
		body: wire.ScheduleTrigger{Beside: beside}, into: &triggered})
	return int64(triggered.ID), err
}

// DeleteSchedule deletes a schedule, its history, and its backfills. A run that executes goes on. It returns
// [delaytask.ErrScheduleNotFound], [delaytask.ErrScheduleOwned] for a schedule that a program declares, and
// [ErrNoAnswer].
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	return c.onSchedule(ctx, name, "delete", &httpCall{method: http.MethodDelete})
}

// Backfill runs the past ticks of a schedule from one time to another, both included: each once, the oldest first, and
// as many at once as given. The runs have the lowest priority. They belong to a schedule of their own, whose name
// Backfill returns.
//
// It returns [delaytask.ErrScheduleNotFound], [delaytask.ErrInvalidRange] when there is no tick in the range, when one
// is to come, or when there are more than 100,000, [delaytask.ErrInvalidOption], and [ErrNoAnswer]. After that look for
// its name with [Client.ListSchedules]: a second call runs the range again.
func (c *Client) Backfill(ctx context.Context, name string, from, to time.Time, atOnce int) (string, error) {
	if atOnce < 1 {
		return "", fmt.Errorf("%w: at once: want 1 or more, got %d", delaytask.ErrInvalidOption, atOnce)
	}
	var started wire.ScheduleBackfilled
	last := wire.Moment(since1970(to))
	err := c.onSchedule(ctx, name, "backfill", &httpCall{method: http.MethodPost, path: "/backfill",
		body: wire.ScheduleBackfill{From: wire.NotBefore(since1970(from)), To: &last, AtOnce: atOnce}, into: &started})
	return started.Name, err
}

// ScheduleTicks returns what became of the ticks of a schedule before a moment, the newest first. A zero moment is the
// end of time. It returns [delaytask.ErrScheduleNotFound], and [delaytask.ErrInvalidOption] when the limit is out of
// range.
func (c *Client) ScheduleTicks(
	ctx context.Context, name string, before time.Time, limit int,
) ([]delaytask.ScheduleTick, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if !before.IsZero() {
		q.Set("before", since1970(before).UTC().Format(time.RFC3339Nano))
	}
	var answer wire.ScheduleTicks
	err := c.onSchedule(ctx, name, "read the history of", &httpCall{
		method: http.MethodGet, path: "/ticks?" + q.Encode(), into: &answer, limit: listAnswer, again: true,
	})
	return answer.To(), err
}

// ExplainSchedule returns what became of a tick of a schedule, and why. With a zero tick it returns how the schedule
// stands. It returns [delaytask.ErrScheduleNotFound].
func (c *Client) ExplainSchedule(
	ctx context.Context, name string, tick time.Time,
) (report.ScheduleExplanation, error) {
	path := "/explain"
	if !tick.IsZero() {
		path += "?" + url.Values{"tick": {since1970(tick).UTC().Format(time.RFC3339Nano)}}.Encode()
	}
	var answer wire.ScheduleExplanation
	err := c.onSchedule(ctx, name, "explain", &httpCall{method: http.MethodGet, path: path, into: &answer, again: true})
	return answer.To(), err
}

// onSchedule sends a request about one schedule. Its path is appended to the schedule's.
func (c *Client) onSchedule(ctx context.Context, name, op string, r *httpCall) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if !delaytask.ValidTag(name) { // names have the characters of tags
		return fmt.Errorf("%s schedule %.140q: %w", op, name, delaytask.ErrScheduleNotFound)
	}
	r.path = "/v1/schedules/" + wire.Segment(name) + r.path
	if unclear, err := c.call(ctx, r); err != nil {
		return fmt.Errorf("%s schedule %s: %w", op, name, unanswered(err, unclear && !r.again))
	}
	return nil
}

package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

const (
	maxAnswer   = 64 << 10 // bytes that are read of an answer
	shownAnswer = 200      // bytes that an error may show
	drainTime   = time.Second
)

// Answer is a receiver's answer that counts as success.
type Answer struct {
	Status int
	// Accepted says that the receiver answered 202. It may end the task later by the lease token of the call. The
	// caller decides whether that makes a [processor.HandOver]. For [Client.HTTP] the task is done.
	Accepted bool
}

// Deliver makes the call for the task. The error is nil when the answer came whole, with a status that means done, and
// satisfies the rule; of an answer longer than 64 KiB only the beginning is awaited, and it satisfies no rule.
// Otherwise it is
//   - a [processor.SnoozeError] with [ErrHostBusy] or [ErrHostDown] when the call is not let through now: that spends
//     no attempt,
//   - a [processor.RetryAfterError] when the receiver answered 429 or 503 and said when to come again, at most 24 h,
//   - a [processor.PermanentError] when the status is one of Config.Permanent,
//   - [StatusError], [MismatchError] or [CallError], which the three above wrap,
//   - [ErrInvalidURL], [ErrBlockedURL], [ErrInvalidHeader] or [ErrInvalidRequest] when the call cannot be made at all.
func (c *Client) Deliver(ctx context.Context, task *delaytask.Task, call Call) (Answer, error) {
	t, err := c.cfg.Guard.check(call.URL)
	if err != nil {
		return Answer{}, err
	}
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := c.newRequest(limited, task, call, t)
	if err != nil {
		return Answer{}, err
	}
	leave, err := c.hosts.enter(t.key())
	if err != nil {
		return Answer{}, err
	}
	result := errNotCalled // what stays if a panic ends the call
	defer func() { leave(result) }()

	traced, end := c.cfg.Trace(noteSent(limited), req.Method, t.key())
	req = req.WithContext(traced)
	c.signAndTrace(req, task, call)
	answer, err := c.exchange(req, call, t.host, cancel)
	end(statusOf(answer, err), err)
	result = hostResult(ctx, err)
	return answer, err
}

// noteSent marks the attempt as started when its request has been sent. The answer may be noticed before that.
func noteSent(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(wrote httptrace.WroteRequestInfo) {
			if wrote.Err == nil {
				processor.Started(ctx)
			}
		},
		GotFirstResponseByte: func() { processor.Started(ctx) },
	})
}

func (c *Client) exchange(req *http.Request, call Call, host string, cancel context.CancelFunc) (Answer, error) {
	resp, err := c.transport(req.URL.Scheme).RoundTrip(req)
	if err != nil {
		return Answer{}, failed(req, host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 {
		// 101: the connection now speaks another protocol, and no context ends the reading from it.
		return Answer{}, &StatusError{Host: host, Status: resp.StatusCode}
	}
	if !call.done(resp.StatusCode) {
		return Answer{}, c.refused(resp, host, cancel)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		// A receiver that breaks its answer off may have been breaking off its work: many send the status before they
		// are done.
		return Answer{}, failed(req, host, err)
	}
	if why := call.Rule.mismatch(body); why != "" {
		return Answer{}, &MismatchError{Host: host, Status: resp.StatusCode, Reason: why}
	}
	return Answer{Status: resp.StatusCode, Accepted: resp.StatusCode == http.StatusAccepted}, nil
}

// failed joins the context's error with the transport's, which sometimes is only the context's cause.
func failed(req *http.Request, host string, err error) error {
	if ended := req.Context().Err(); ended != nil {
		err = errors.Join(ended, err)
	}
	return &CallError{Host: host, Err: err}
}

func (c *Call) done(status int) bool {
	if len(c.Statuses) > 0 {
		return slices.Contains(c.Statuses, status)
	}
	return status >= 200 && status <= 299
}

// refused reads the rest of the answer for a short time, so that the connection can be used again.
func (c *Client) refused(resp *http.Response, host string, cancel context.CancelFunc) error {
	stop := time.AfterFunc(drainTime, cancel)
	defer stop.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	status := &StatusError{Host: host, Status: resp.StatusCode}
	if c.cfg.ShowAnswer {
		status.Answer = printable(body)
	}
	if slices.Contains(c.cfg.Permanent, resp.StatusCode) {
		return processor.Permanent(status)
	}
	if after := retryAfter(resp, time.Now()); after > 0 {
		return processor.RetryAfter(status, after)
	}
	return status
}

// statusOf is 0 where no answer came.
func statusOf(answer Answer, err error) int {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Status
	}
	if mismatch, ok := errors.AsType[*MismatchError](err); ok {
		return mismatch.Status
	}
	return answer.Status
}

// hostResult returns what a call's result says about its host.
func hostResult(ctx context.Context, err error) error {
	if status, ok := errors.AsType[*StatusError](err); ok {
		switch status.Status {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return err
		}
		return nil
	}
	if _, ok := errors.AsType[*CallError](err); !ok {
		return nil // an answer, whatever the rule thinks of it
	}
	givenUp := errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), delaytask.ErrTimeout)
	if givenUp || errors.Is(err, ErrBlockedURL) {
		return errNotCalled
	}
	return err
}

// printable drops what could move a terminal's cursor or end a line of a log.
func printable(body []byte) string {
	text := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, string(body[:min(len(body), shownAnswer)]))
	return strings.Join(strings.Fields(text), " ")
}

const longestRetryAfter = 24 * time.Hour

// retryAfter returns how long a 429 or 503 asks to wait, or 0 when it says nothing, "now" or a time that has passed:
// then the tag's backoff decides. A date is compared with the answer's own Date, which the same clock made.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(n, uint64(longestRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longestRetryAfter)
}

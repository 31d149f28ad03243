package webhook

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/delaytask/delaytask"
)

const (
	maxHeader = 16 << 10 // bytes of all names and values

	headerTaskID   = "Delaytask-Id"
	headerTag      = "Delaytask-Tag"
	headerAttempt  = "Delaytask-Attempt"
	headerCrashes  = "Delaytask-Crashes"
	headerToken    = "Delaytask-Token"
	headerExpected = "Delaytask-Expected"
	headerSchedule = "Delaytask-Schedule"
	headerTick     = "Delaytask-Tick"
)

// Call is a request to make for a task, and what counts as its answer.
type Call struct {
	Method string // GET, POST, PUT, PATCH or DELETE; "" means POST
	URL    string
	Header http.Header // those that the transport or this package sets are refused
	Body   []byte

	Secrets  []Secret // none: the call is not signed
	Rule     Rule     // the zero value: the answer's body does not matter
	Statuses []int    // the statuses that mean done; none: 200–299
}

func (c *Client) newRequest(ctx context.Context, task *delaytask.Task, call Call, t target) (*http.Request, error) {
	if err := checkHeader(call.Header); err != nil {
		return nil, err
	}
	method := cmp.Or(call.Method, http.MethodPost)
	if !validMethod(method) {
		return nil, fmt.Errorf("%w: the method must be GET, POST, PUT, PATCH or DELETE", ErrInvalidRequest)
	}
	req, err := http.NewRequestWithContext(ctx, method, t.url.String(), bytes.NewReader(call.Body))
	if err != nil {
		return nil, fmt.Errorf("%w: it is malformed", ErrInvalidURL)
	}
	if call.Header != nil {
		req.Header = call.Header.Clone()
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.cfg.UserAgent)
	}
	if req.Header.Get("Idempotency-Key") == "" {
		// Receivers have to expect repetitions. The empty key is not sent. It lets the transport repeat a call at once
		// whose idle connection the receiver was closing.
		req.Header["Idempotency-Key"] = []string{}
	}
	setTaskHeaders(req.Header, task)
	return req, nil
}

// signAndTrace adds the trace and the signature, which depend on when the call is made.
func (c *Client) signAndTrace(req *http.Request, task *delaytask.Task, call Call) {
	c.cfg.Inject(req.Context(), req.Header)
	if req.Header.Get("traceparent") == "" {
		continueTrace(req.Header, task)
	}
	sign(req.Header, task.ID, time.Now(), call.Body, call.Secrets)
}

func setTaskHeaders(header http.Header, task *delaytask.Task) {
	id := strconv.FormatInt(task.ID, 10)
	header.Set(headerTaskID, id)
	header.Set(headerTag, task.Tag)
	header.Set(headerAttempt, strconv.Itoa(task.Attempt))
	if task.Crashes > 0 {
		header.Set(headerCrashes, strconv.Itoa(task.Crashes))
	}
	header.Set(headerToken, id+"."+strconv.FormatInt(task.Version, 10))
	header.Set(headerExpected, task.Expected.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	if task.Schedule != nil {
		header.Set(headerSchedule, task.Schedule.Name)
		header.Set(headerTick, task.Schedule.Tick.UTC().Format(time.RFC3339))
	}
}

func continueTrace(header http.Header, task *delaytask.Task) {
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := task.Headers[name]; value != "" && httpguts.ValidHeaderFieldValue(value) && header.Get(name) == "" {
			header.Set(name, value)
		}
	}
}

// reserved headers belong to the transport, to the connection, or to this package.
var reserved = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Keep-Alive": true, "Te": true,
	"Trailer": true, "Upgrade": true, "Expect": true, "Http2-Settings": true, "Proxy-Connection": true,
	"Proxy-Authorization": true, "Proxy-Authenticate": true,
	headerID: true, headerTimestamp: true, headerSignature: true,
	headerTaskID: true, headerTag: true, headerAttempt: true, headerCrashes: true, headerToken: true,
	headerExpected: true, headerSchedule: true, headerTick: true,
}

// checkHeader names no values in its errors: they are often secret.
func checkHeader(header http.Header) error {
	size := 0
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%w: a name is empty or holds characters that a token may not have", ErrInvalidHeader)
		}
		if reserved[http.CanonicalHeaderKey(name)] {
			return fmt.Errorf("%w: %s is not yours to set", ErrInvalidHeader, http.CanonicalHeaderKey(name))
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("%w: the value of %s holds a line break or another control character",
					ErrInvalidHeader, name)
			}
			size += len(name) + len(value)
		}
	}
	if size > maxHeader {
		return fmt.Errorf("%w: they take %d bytes, the limit is %d", ErrInvalidHeader, size, maxHeader)
	}
	return nil
}

func validMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

func validStatus(status int) bool { return status >= 200 && status <= 599 }

package client

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// desk hands tasks out and writes down what comes back. It has no network, so that it works in a bubble. test/api holds
// the client to the real service.
type desk struct {
	mu       sync.Mutex
	waiting  []wire.Popped
	wake     chan struct{}
	asked    []int // max of the polls
	tags     []string
	late     []string // handed out to a poll while it is broken off
	ends     []string
	batches  []int // sizes of the batches of finishes
	touched  map[string]int
	lost     map[string]bool // tokens that are refused
	away     bool            // nothing is answered
	finishes chan struct{}   // one is taken for each batch that is answered; nil: at once
}

func newDesk() *desk {
	return &desk{wake: make(chan struct{}, 1), touched: map[string]int{}, lost: map[string]bool{}}
}

func (d *desk) client(t *testing.T, opts ...Option) *Client {
	t.Helper()
	c, err := New("http://desk", append([]Option{
		WithHTTPClient(&http.Client{Transport: d}), WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	mustOK(t, err)
	return c
}

// RoundTrip answers without a network, and notices callers that hang up.
func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	away := d.away
	d.mu.Unlock()
	if away {
		return nil, http.ErrServerClosed
	}
	rec, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		if r.URL.Path == "/v1/pop" {
			d.pop(rec, r)
		} else {
			d.end(rec, r)
		}
	}()
	<-done
	if err := r.Context().Err(); err != nil && rec.Body.Len() == 0 {
		return nil, err
	}
	return rec.Result(), nil
}

func (d *desk) hand(tokens ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := wire.Time(time.Now())
	for _, token := range tokens {
		id, _, _ := strings.Cut(token, ".")
		n, _ := strconv.ParseInt(id, 10, 64)
		d.waiting = append(d.waiting, wire.Popped{ID: wire.ID(n), Token: token, Tag: "a", Attempt: 1, Expected: now,
			Due: now})
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *desk) pop(w http.ResponseWriter, r *http.Request) {
	most, _ := strconv.Atoi(r.URL.Query().Get("max"))
	wait, _ := wire.ParseDuration(r.URL.Query().Get("wait"))
	d.mu.Lock()
	d.asked, d.tags = append(d.asked, most), r.URL.Query()["tag"]
	d.mu.Unlock()
	for over := time.After(wait); ; {
		d.mu.Lock()
		n := min(most, len(d.waiting))
		reply := wire.PopReply{Tasks: d.waiting[:n:n]}
		d.waiting = d.waiting[n:]
		d.mu.Unlock()
		if n > 0 {
			says(http.StatusOK, reply)(w, r)
			return
		}
		select {
		case <-d.wake:
		case <-over:
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			d.mu.Lock()
			late := d.late
			d.late = nil
			d.mu.Unlock()
			if len(late) == 0 {
				return
			}
			d.hand(late...)
		}
	}
}

// end takes what ends or moves a lease.
func (d *desk) end(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token, Error, Delay string
		Tokens              []string
		Permanent           bool
		RetryAfter          string `json:"retry_after"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	op := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if body.Tokens != nil && d.finishes != nil {
		<-d.finishes
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if body.Tokens != nil {
		var reply wire.FinishBatchReply
		for _, token := range body.Tokens {
			result := wire.FinishResult{Token: token}
			if d.lost[token] {
				result.Code = wire.CodeLeaseLost
			}
			reply.Results = append(reply.Results, result)
			d.ends = append(d.ends, "finish "+token)
		}
		d.batches = append(d.batches, len(body.Tokens))
		says(http.StatusOK, reply)(w, r)
		return
	}
	if op == "touch" {
		d.touched[body.Token]++
	} else {
		text := []string{op, body.Token, body.Error, body.Delay, body.RetryAfter}
		d.ends = append(d.ends, strings.Join(strings.Fields(strings.Join(text, " ")), " "))
	}
	if d.lost[body.Token] {
		leaseLost(w, r)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// reported returns what has come back so far.
func (d *desk) reported() string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.ends, ", ")
}

func (d *desk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// atDesk runs the test in a bubble, with a client that is stopped in the end.
func atDesk(t *testing.T, test func(t *testing.T, d *desk, c *Client), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := d.client(t, opts...)
		test(t, d, c)
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func begin(t *testing.T, c *Client, p processor.Func, opts ...processor.RegisterOption) {
	t.Helper()
	mustOK(t, c.Register("a", p, opts...))
	mustOK(t, c.Start(t.Context()))
}

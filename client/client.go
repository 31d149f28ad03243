package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/processor"
)

var _ processor.Scheduler = (*Client)(nil)

// Client calls one service. Make it with [New]; it is safe for concurrent use.
//
// Every method that takes a context returns [delaytask.ErrNilContext] for a nil one, the context's cause when that has
// ended, and [delaytask.ErrClosed] after Stop. What the service refuses is an [*Error], which Is the error of package
// processor that the library would have returned.
type Client struct {
	service
	idle func() // closes the connections of a pool that is ours

	worker *worker
	stop   sync.Once
	ended  error
	closed atomic.Bool
}

// New returns a client of the service at the base URL, such as http://127.0.0.1:8080. Nothing is sent yet. It returns
// [delaytask.ErrInvalidOption] for a URL that is not http or https or holds more than host, port and a path.
func New(baseURL string, opts ...Option) (*Client, error) {
	base, err := checkBase(baseURL)
	if err != nil {
		return nil, err
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	c := &Client{service: service{config: cfg, base: base}}
	c.http, c.idle = httpClient(&cfg)
	c.worker = newWorker(&c.service)
	return c, nil
}

// checkBase quotes no URL that it refuses: it may hold a password.
func checkBase(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%w: want a base URL of http or https such as http://127.0.0.1:8080",
			delaytask.ErrInvalidOption)
	case u.User != nil:
		return "", fmt.Errorf("%w: the base URL holds a user name; pass a token with WithAccessToken",
			delaytask.ErrInvalidOption)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%w: the base URL holds more than a host and a path", delaytask.ErrInvalidOption)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// httpClient copies the caller's client, so that the redirect policy of the original stays.
func httpClient(cfg *config) (h *http.Client, idle func()) {
	h, idle = &http.Client{}, func() {}
	if cfg.http != nil {
		*h = *cfg.http
	} else {
		pool := http.DefaultTransport.(*http.Transport).Clone()
		pool.MaxIdleConnsPerHost = cfg.concurrency + otherCalls
		pool.MaxIdleConns = pool.MaxIdleConnsPerHost
		h.Transport, idle = pool, pool.CloseIdleConnections
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h, idle
}

// otherCalls is how many connections are kept besides those that a worker may use for each task: polls, renewals, and
// saves.
const otherCalls = 16

var drawn = ids.NewSource(ids.RandomNode(), time.Now)

// NewID returns a new id to save with, for a caller that needs it before the save or saves again under it: see
// [delaytask.WithID].
func NewID() int64 { return drawn.Next() }

func (c *Client) enter(ctx context.Context) error {
	switch {
	case ctx == nil:
		return delaytask.ErrNilContext
	case c.closed.Load():
		return delaytask.ErrClosed
	default:
		return context.Cause(ctx)
	}
}

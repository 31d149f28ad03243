package client

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/processor"
)

// Option is a setting of [New]. Each may return [delaytask.ErrInvalidOption].
type Option func(*config) error

type config struct {
	authorize   func(http.Header) // a function, because a token would show when a client is printed
	name        string
	http        *http.Client
	log         *slog.Logger
	concurrency int
	ttr         time.Duration
	timeout     time.Duration // 0: none
	grace       time.Duration
	retryFor    time.Duration
	bodyLimit   int
}

// WithAccessToken sends a bearer token with every request. It never shows in errors or logs.
func WithAccessToken(token string) Option {
	return func(c *config) error {
		for i := range len(token) {
			if token[i] <= ' ' || token[i] > '~' {
				return fmt.Errorf("%w: the token holds a character that no token has", delaytask.ErrInvalidOption)
			}
		}
		if token != "" {
			c.authorize = func(h http.Header) { h.Set("Authorization", "Bearer "+token) }
		}
		return nil
	}
}

// WithName sets the name of the program in the User-Agent, which the service writes to its access log. Default: the
// program's name is left out.
func WithName(name string) Option {
	return func(c *config) error {
		if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("%w: a name of visible ASCII characters is wanted", delaytask.ErrInvalidOption)
		}
		c.name = name
		return nil
	}
}

// WithHTTPClient sends requests with h instead of a client with a connection pool of its own. Redirects are not
// followed either way. Its Timeout must leave room for long polls of 30 s.
func WithHTTPClient(h *http.Client) Option {
	return func(c *config) error {
		if h == nil {
			return fmt.Errorf("%w: the HTTP client is nil", delaytask.ErrInvalidOption)
		}
		c.http = h
		return nil
	}
}

// WithLogger sets where failures to take and report tasks are logged. Default: slog.Default. Bodies, headers and the
// token are never written.
func WithLogger(log *slog.Logger) Option {
	return func(c *config) error {
		c.log = log
		return nil
	}
}

// WithConcurrency is how many tasks run at once in this process, besides the tasks of tags with a
// [processor.Concurrency], which adds slots here and does not bound these. Default 64.
func WithConcurrency(n int) Option {
	return bounded("concurrency", n, 1, 100_000, func(c *config) { c.concurrency = n })
}

// WithTTR is the lease of tasks whose tag is registered without [processor.TTR]: how long after the death of this
// process another one takes its task. Default 15 s, 1 s to 24 h.
func WithTTR(d time.Duration) Option {
	return bounded("TTR", d, time.Second, 24*time.Hour, func(c *config) { c.ttr = d })
}

// WithTimeout bounds an attempt of a tag that is registered without [processor.Timeout]. Negative: no bound. Default
// and 0: 5 min.
func WithTimeout(d time.Duration) Option {
	return bounded("timeout", d, math.MinInt64, 365*24*time.Hour, func(c *config) {
		c.timeout = max(cmp.Or(d, defaultTimeout), 0)
	})
}

const defaultTimeout = 5 * time.Minute

// WithStopGrace is how long Stop waits for running tasks. Default 30 s.
func WithStopGrace(d time.Duration) Option {
	return bounded("grace", d, time.Millisecond, 24*time.Hour, func(c *config) { c.grace = d })
}

// WithRetryFor says for how long a call without an answer is repeated, unless its context ends before. Default 30 s; 0
// means that nothing is repeated.
func WithRetryFor(d time.Duration) Option {
	return bounded("retry time", d, 0, 24*time.Hour, func(c *config) { c.retryFor = d })
}

// WithBodyLimit is how long a body may be: what the service is configured with. Default 1 MiB.
func WithBodyLimit(bytes int) Option {
	return bounded("body limit", bytes, 1, 1<<30, func(c *config) { c.bodyLimit = bytes })
}

// bounded is the option of a value that must not be outside of its bounds.
func bounded[T cmp.Ordered](what string, value, least, most T, set func(*config)) Option {
	return func(c *config) error {
		set(c)
		return within(what, value, least, most)
	}
}

func within[T cmp.Ordered](what string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%w: the %s is %v, want %v to %v", delaytask.ErrInvalidOption, what, value, least, most)
	}
	return nil
}

func newConfig(opts []Option) (config, error) {
	c := config{
		authorize: func(http.Header) {}, concurrency: 64, ttr: 15 * time.Second, timeout: defaultTimeout,
		grace: 30 * time.Second, retryFor: 30 * time.Second, bodyLimit: request.DefaultBodyLimit,
	}
	for _, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("%w: it is nil", delaytask.ErrInvalidOption)
		}
		if err := opt(&c); err != nil {
			return c, err
		}
	}
	c.log = cmp.Or(c.log, slog.Default())
	return c, nil
}

func (c *config) leaseOf(reg *processor.Registration) time.Duration {
	return cmp.Or(reg.TTR, c.ttr)
}

func (c *config) timeoutOf(reg *processor.Registration) time.Duration {
	if reg.NoTimeout {
		return 0
	}
	return cmp.Or(reg.Timeout, c.timeout)
}

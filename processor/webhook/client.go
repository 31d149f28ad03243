package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Config says how a [Client] calls. Zero fields take their defaults.
type Config struct {
	// Guard decides what may be called. Default: public addresses by https on ports 80, 443 and 8443.
	Guard *Guard
	// Timeout bounds a call from the look-up to the end of the answer; the attempt's timeout holds too. Default 30 s.
	Timeout time.Duration
	// HeaderTimeout bounds the wait for the answer's status once the request is sent. Default 10 s.
	HeaderTimeout time.Duration
	// HostConcurrency is how many calls to one host and port run at once. Default 16.
	HostConcurrency int
	// HostRate is how many calls to one host and port begin in a second. Default 0: no limit.
	HostRate float64
	// HostBurst is how many of them may begin at the same moment. Default: one second's worth, at least 1.
	HostBurst int
	// BreakerFailures is after how many calls in a row without a usable answer (none at all, 502, 503, 504) a host is
	// left alone for BreakerWait; then one call tries whether it is back. Default 5 and 10 s.
	BreakerFailures int
	BreakerWait     time.Duration
	// MaxHosts is for how many hosts limits are kept. The host called longest ago is dropped first. Default 4096.
	MaxHosts int
	// Permanent lists statuses that fail a task at once, such as 410. Default: none, every failure spends one attempt.
	Permanent []int
	// ShowAnswer puts the first 200 bytes of a refusing answer into the error, where every reader of the task sees
	// them. Leave it off if authors of tasks must not read what this machine can reach.
	ShowAnswer bool
	// UserAgent is sent where the request names none. Default "delaytask".
	UserAgent string
	// TLS is cloned: own roots, a client certificate. Default: the system's roots, TLS 1.2 or later.
	TLS *tls.Config
	// Trace is called before each call that the limits of its host let through. Default: nothing is called.
	Trace TraceHook
	// Inject is called with the headers of every call before it is signed, to pass a trace on. Where it sets no
	// traceparent, the task's own headers traceparent and tracestate are passed on. Default: only those are.
	Inject func(ctx context.Context, header http.Header)
	// Log gets a line when a host is left alone and when it is back. Default slog.Default().
	Log *slog.Logger
}

// TraceHook is called when a call begins, with its method and its "host:port". It returns the context of the call,
// which Inject gets, and a function. That is called at the end with the status of the answer (0: there was none) and
// the error of [Client.Deliver]. Neither result may be nil.
type TraceHook func(ctx context.Context, method, host string) (context.Context, func(status int, err error))

// Client makes calls. It is safe for concurrent use; make one for a process, because the limits of a host are its own.
type Client struct {
	cfg           Config
	plain, secure *http.Transport
	hosts         *hosts
}

// New makes a client. It returns [ErrInvalidConfig] when a setting is negative or a status is not 200 to 599.
func New(cfg Config) (*Client, error) {
	for _, n := range []float64{float64(cfg.Timeout), float64(cfg.HeaderTimeout), float64(cfg.HostConcurrency),
		cfg.HostRate,
		float64(cfg.HostBurst), float64(cfg.BreakerFailures), float64(cfg.BreakerWait), float64(cfg.MaxHosts)} {
		if !(n >= 0) { // also what is not a number
			return nil, fmt.Errorf("%w: a setting is negative", ErrInvalidConfig)
		}
	}
	if slices.ContainsFunc(cfg.Permanent, func(status int) bool { return !validStatus(status) }) {
		return nil, fmt.Errorf("%w: permanent statuses must be 200-599", ErrInvalidConfig)
	}
	cfg.setDefaults()
	return &Client{
		cfg: cfg, plain: newTransport(cfg, "http"), secure: newTransport(cfg, "https"), hosts: newHosts(cfg),
	}, nil
}

func (cfg *Config) setDefaults() {
	if cfg.Guard == nil {
		cfg.Guard, _ = NewGuard(GuardConfig{}) // its errors are about the allow list
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.HeaderTimeout = cmp.Or(cfg.HeaderTimeout, 10*time.Second)
	cfg.HostConcurrency = cmp.Or(cfg.HostConcurrency, 16)
	cfg.HostBurst = cmp.Or(cfg.HostBurst, max(int(min(cfg.HostRate, 1e6)), 1))
	cfg.BreakerFailures = cmp.Or(min(cfg.BreakerFailures, 1e6), 5)
	cfg.BreakerWait = cmp.Or(cfg.BreakerWait, 10*time.Second)
	cfg.MaxHosts = cmp.Or(cfg.MaxHosts, 4096)
	cfg.Permanent = slices.Clone(cfg.Permanent)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "delaytask")
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Trace == nil {
		cfg.Trace = func(ctx context.Context, _, _ string) (context.Context, func(int, error)) {
			return ctx, func(int, error) {}
		}
	}
	if cfg.Inject == nil {
		cfg.Inject = func(context.Context, http.Header) {}
	}
}

// Close gives idle connections back. Calls that run go on. Later ones open new connections.
func (c *Client) Close() {
	c.plain.CloseIdleConnections()
	c.secure.CloseIdleConnections()
}

// CheckURL refuses what its guard can refuse without a look-up: [ErrInvalidURL] or [ErrBlockedURL].
func (c *Client) CheckURL(raw string) error { return c.cfg.Guard.CheckURL(raw) }

// Down reports whether calls to the host of a URL wait because it did not answer the last ones. Then one call tries it
// at the moment that is returned, which is past while that call runs. Down knows the calls of this client alone.
func (c *Client) Down(raw string) (again time.Time, down bool) {
	t, err := parseURL(raw)
	if err != nil {
		return time.Time{}, false
	}
	return c.hosts.down(t.key())
}

// newTransport makes the connections of one scheme. Each scheme has its own, so that the guard knows what it dials for.
// There is no http.Client before it: it would follow redirects and quote the URL in its errors.
func newTransport(cfg Config, scheme string) *http.Transport {
	var secure *tls.Config
	if cfg.TLS != nil {
		secure = cfg.TLS.Clone()
	}
	return &http.Transport{
		// Proxy stays nil: through a proxy of the environment the guard would see the proxy's address and protect
		// nothing.
		DialContext:            cfg.Guard.dial(scheme),
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  cfg.HeaderTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // a small answer cannot unpack into a large one
		ForceAttemptHTTP2:      true, // a custom dialler turns it off otherwise
		// Without pings a connection whose other end vanished is used for every call until the system gives it up.
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
		MaxConnsPerHost:     cfg.HostConcurrency,
		MaxIdleConnsPerHost: cfg.HostConcurrency,
		MaxIdleConns:        256,
		IdleConnTimeout:     90 * time.Second,
	}
}

func (c *Client) transport(scheme string) *http.Transport {
	if scheme == "https" {
		return c.secure
	}
	return c.plain
}

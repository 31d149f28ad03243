package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/api"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/server/crowd"
	"github.com/delaytask/delaytask/internal/server/otlp"
	"github.com/delaytask/delaytask/internal/server/traces"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	headerWait = 5 * time.Second
	idleWait   = 2 * time.Minute
	// mostHeaderBytes bounds the headers of a request; larger ones are answered with 431.
	mostHeaderBytes = 16 << 10
	// headerSlop is what net/http reads beyond that before it refuses.
	headerSlop = 4 << 10
	// mostStreams is how many requests one connection has at once, and mostUnread how many bytes of their bodies wait
	// to be read.
	mostStreams = 100
	mostUnread  = 64 << 10
	// answerWait is how long requests in flight may take when the service stops. Waiting pops end at once.
	answerWait = 10 * time.Second
	// lastWait is how long the last answers of health checks may take after the service has stopped.
	lastWait = time.Second
)

// Service is a server that is ready to run.
type Service struct {
	cfg      config.Config
	log      *slog.Logger
	listener net.Listener
	parts    *parts
	api      *api.API
	server   *http.Server
	stopping context.CancelFunc
	traces   otlp.Settings
	first    bootstrap
	pages    Pages // nil: the pages of package dashboard
}

// Option configures what the settings do not contain.
type Option func(*Service)

// Traced sends the spans of the service to a collector.
func Traced(to otlp.Settings) Option { return func(s *Service) { s.traces = to } }

// Bootstrap stores a first token, unless that is nil. The audit log says who has given it.
func Bootstrap(by operate.By, token *row.AccessToken) Option {
	return func(s *Service) { s.first = bootstrap{by, token} }
}

// bootstrap is a first token.
type bootstrap struct {
	by    operate.By
	token *row.AccessToken // nil: none
}

// Pages makes the handler of the dashboard. Its requests carry a caller, and their paths are below /ui. readOnly says
// that no caller may change anything.
type Pages func(s *scheduler.Scheduler, readOnly bool) (http.Handler, error)

// Dashboard serves these pages at /ui/ instead of the pages of package dashboard.
func Dashboard(pages Pages) Option { return func(s *Service) { s.pages = pages } }

// Open listens and opens the database, so that every mistake is reported before a request is accepted. It returns an
// error about the settings, the database, or the address.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger, options ...Option) (*Service, error) {
	s := &Service{cfg: cfg, log: log}
	for _, option := range options {
		option(s)
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Service) open(ctx context.Context) (err error) {
	if s.listener, err = listen(ctx, s.cfg.Server); err != nil {
		return err
	}
	if s.parts, err = newParts(ctx, s.cfg, s.log, s.URL(), s.traces, s.first); err != nil {
		return err
	}
	s.log = s.parts.log
	var stopping context.Context
	stopping, s.stopping = context.WithCancel(context.Background())
	if s.api, err = s.parts.handler(stopping, s.pages); err != nil {
		return err
	}
	s.server = &http.Server{
		Handler:           traces.Extracted(nil, s.parts.spans.served(s.api)),
		ReadHeaderTimeout: headerWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    mostHeaderBytes,
		ConnContext:       crowd.Context,
		ConnState:         crowd.State,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: mostStreams, MaxReceiveBufferPerConnection: mostUnread,
			MaxReceiveBufferPerStream: mostUnread,
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),

		DisableGeneralOptionsHandler: true, // OPTIONS * is answered like any other unsupported method
	}
	return nil
}

// listen opens the address, with as many connections at once as are allowed, and with TLS where a certificate is named.
func listen(ctx context.Context, c config.Server) (net.Listener, error) {
	tlsConfig, err := tlsOf(c.TLS)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("server.listen: %w; stop what listens there, or set another address", err)
	}
	if err != nil {
		return nil, fmt.Errorf("server.listen: %w", err)
	}
	listener = crowd.Listen(listener, c.MaxConnections, mostHeaderBytes+headerSlop)
	if tlsConfig != nil {
		listener = secured(listener, tlsConfig)
	}
	return listener, nil
}

// Tokens reports whether callers need one from the start.
func (s *Service) Tokens() bool { return s.parts.asked }

// Run serves until ctx ends, and then stops in order: waiting pops return, requests in flight are answered, running
// tasks get their grace and are released after it. It returns nil when all of that succeeded, also when ctx ends during
// the start.
func (s *Service) Run(ctx context.Context) error {
	if err := s.parts.scheduler.Start(ctx); err != nil {
		if errors.Is(err, ctx.Err()) {
			err = nil
		}
		return errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	s.parts.start(ctx)
	failed := make(chan error, 1)
	go func() { failed <- s.server.Serve(s.listener) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	return errors.Join(err, s.close(context.WithoutCancel(ctx)))
}

// close ends whatever was opened, the listener last: while tasks have their grace, health checks answer that this
// server stops.
func (s *Service) close(ctx context.Context) (err error) {
	if s.stopping != nil {
		s.stopping()
	}
	if s.server != nil {
		s.server.SetKeepAlivesEnabled(false) // clients connect to another server for their next request
		if within(ctx, answerWait, s.api.Close) != nil {
			s.log.Warn("requests are not answered yet; they may be cut off", "after", answerWait)
		}
	}
	if s.parts != nil {
		err = s.parts.close(ctx)
	}
	if s.server != nil {
		if within(ctx, lastWait, s.server.Shutdown) != nil {
			err = errors.Join(err, s.server.Close())
		}
	}
	if s.listener != nil {
		_ = s.listener.Close() // the server has closed it if it ever served
	}
	return err
}

func within(ctx context.Context, wait time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return do(ctx)
}

// tlsOf returns nil where no certificate is named.
func tlsOf(c config.TLS) (*tls.Config, error) {
	if c.Cert == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("server.tls.cert and server.tls.key: %w", err)
	}
	cfg := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if c.ClientCA == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("server.tls.client_ca: %w", err)
	}
	cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !cfg.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("server.tls.client_ca: %s holds no certificate in PEM", c.ClientCA)
	}
	return cfg, nil
}

func secured(l net.Listener, cfg *tls.Config) net.Listener { return tls.NewListener(l, cfg) }

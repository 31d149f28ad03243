package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/server/api"
	"github.com/delaytask/delaytask/internal/server/compat"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/server/otlp"
	"github.com/delaytask/delaytask/internal/server/push"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/processor/webhook"
	"github.com/delaytask/delaytask/scheduler"
)

// parts are what the service is made of, in the order in which they are made.
type parts struct {
	cfg       config.Config
	log       *slog.Logger     // without secrets
	redactor  *redact.Redactor // nil: secrets are shown
	registry  *prometheus.Registry
	spans     *spans
	scheduler *scheduler.Scheduler
	store     *sqlstore.Store
	audit     *audit.Log
	tokens    *access.Tokens // nil: none is ever required
	asked     bool           // for tokens, from the start
	client    *webhook.Client
	receivers *push.Registry
	rooms     *reqbody.Rooms // for what requests hold

	end   context.CancelFunc // of what runs beside the scheduler
	loops sync.WaitGroup
}

func newParts(
	ctx context.Context, cfg config.Config, log *slog.Logger, url string, to otlp.Settings, first bootstrap,
) (*parts, error) {
	p := &parts{cfg: cfg, registry: prometheus.NewRegistry(), rooms: reqbody.NewRooms(cfg.Server.MaxConnections)}
	var err error
	if cfg.Server.Redact != "off" {
		if p.redactor, err = redact.New(cfg.Server.RedactNames...); err != nil {
			return nil, fmt.Errorf("server.redact_names: %w", err)
		}
	}
	p.log = slog.New(p.redactor.Handler(log.Handler()))
	measured := metrics.New()
	p.registry.MustRegister(measured, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if p.spans, err = newSpans(ctx, to, p.log, p.registry, p.redactor); err != nil {
		return nil, err
	}
	c := schedulerConfig(cfg, p.log, measured, url)
	c.TracerProvider = p.spans.provider()
	if p.scheduler, err = scheduler.Open(ctx, cfg.DSN, c); err != nil {
		p.spans.close(ctx)
		return nil, err
	}
	if err := p.make(ctx, first); err != nil {
		return nil, errors.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *parts) make(ctx context.Context, first bootstrap) (err error) {
	stored, ok := core.Of(p.scheduler).Store().(*sqlstore.Store)
	if !ok {
		return errors.New("the service needs a database")
	}
	p.store = stored
	if err := stored.CheckService(ctx); err != nil {
		return err
	}
	p.audit = audit.New(audit.Config{Store: p.store, Level: audit.Level(p.cfg.Server.Audit), Log: p.log})
	if err := p.admit(ctx, first); err != nil {
		return err
	}
	if err := p.makePush(); err != nil {
		return err
	}
	return p.declareSchedules()
}

// makePush makes the client that calls addresses. It may call loopback where the service is a developer's: on loopback
// itself, with the embedded database.
func (p *parts) makePush() error {
	loopback, err := isLoopback(p.cfg.Server.Listen)
	if err != nil {
		return err
	}
	guard, err := webhook.NewGuard(webhook.GuardConfig{
		Allow:         p.cfg.Push.Allow,
		AllowLoopback: loopback && strings.HasPrefix(p.cfg.DSN, "sqlite:"),
	})
	if err != nil {
		return fmt.Errorf("push.allow: %w", err)
	}
	p.client, err = webhook.New(webhook.Config{
		Guard: guard, Timeout: p.cfg.Push.Timeout, HeaderTimeout: p.cfg.Push.Timeout,
		HostConcurrency: p.cfg.Push.HostConcurrency, HostRate: p.cfg.Push.HostRate, Log: p.log,
		Trace: p.spans.called(), Inject: p.spans.inject(),
	})
	if err != nil {
		return err
	}
	return p.serveTags()
}

// handler makes the API with everything before and behind it.
func (p *parts) handler(stopping context.Context, pages Pages) (*api.API, error) {
	names := p.names()
	observer, err := newObserver(p.log, p.registry)
	if err != nil {
		return nil, err
	}
	legacy, err := compat.New(compat.Config{
		Scheduler: p.scheduler, Log: p.log, BodyLimit: p.cfg.BodyLimit, Stopping: stopping, Check: p.check,
		Rooms: p.rooms, OtherNames: names.others(), GetTopics: p.cfg.Server.GetTopics,
	})
	if err != nil {
		return nil, err
	}
	c := api.Config{
		Scheduler: p.scheduler, Log: p.log, BodyLimit: p.cfg.BodyLimit, Stopping: stopping,
		CheckHost: !names.any, Addresses: names.addresses, Hosts: names.hosts,
		Rooms: p.rooms, Audit: p.audit, Requests: p.store, Receivers: p.receivers, Check: p.check,
		Redactor: p.redactor, Observe: p.spans.observed(observer.observe),
		Compat: legacy, OpenMetrics: p.cfg.Server.Metrics == "open",
		Metrics: promhttp.HandlerFor(p.registry,
			promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)}),
	}
	if p.tokens != nil {
		c.Tokens = p.tokens
	}
	if pages == nil {
		pages = p.pages()
	}
	if p.cfg.Server.Dashboard != "off" {
		if c.Dashboard, err = p.dashboard(pages); err != nil {
			return nil, err
		}
	}
	return api.New(c)
}

// start runs the parts beside the scheduler.
func (p *parts) start(ctx context.Context) {
	ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	p.loops.Go(func() { p.receivers.Run(ctx) })
	p.loops.Go(func() { p.purge(ctx) })
}

func (p *parts) close(ctx context.Context) error {
	if p.end != nil {
		p.end()
	}
	p.loops.Wait()
	err := p.scheduler.Stop(ctx)
	if errors.Is(err, delaytask.ErrGraceEnded) {
		p.log.Info("tasks were released at the end of the grace; others run them")
		err = nil
	}
	if p.client != nil {
		p.client.Close()
	}
	p.spans.close(ctx) // when the last attempt has ended
	return err
}

const purgeEvery = time.Minute

// purge deletes idempotency keys that are a day old, and sessions that are over.
func (p *parts) purge(ctx context.Context) {
	ticker := time.NewTicker(purgeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		p.purgeOld(ctx, "idempotency keys", p.store.PurgeRequests)
		p.purgeOld(ctx, "sessions", p.store.PurgeSessions)
	}
}

func (p *parts) purgeOld(ctx context.Context, what string, purge func(ctx context.Context, limit int) (int, error)) {
	const most = 1000
	for ctx.Err() == nil {
		n, err := purge(ctx, most)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("old rows could not be deleted; they are tried again", "of", what, "err", err)
		}
		if err != nil || n < most {
			return
		}
	}
}

// admit decides whether callers need a token, stores the first one, and refuses settings that would expose the service.
func (p *parts) admit(ctx context.Context, first bootstrap) error {
	loopback, err := isLoopback(p.cfg.Server.Listen)
	if err != nil {
		return err
	}
	c := p.cfg.Server
	inside := loopback || c.Insecure
	if c.Auth == "none" && !inside {
		return fmt.Errorf("server.listen is %s, where others can reach it, with server.auth: none. Everybody could "+
			"do everything; ask for tokens, listen on 127.0.0.1, or insist with --insecure", c.Listen)
	}
	if err := p.storeFirst(ctx, first); err != nil || c.Auth == "none" {
		return err
	}
	if c.Auth == "auto" && inside {
		p.tokens = access.NewTokensOnceThereAreAny(p.store)
		p.asked, err = p.tokens.Asked(ctx) // so that a reading exists when the database goes away
		return err
	}
	p.tokens, p.asked = access.NewTokens(p.store), true
	missing, err := access.NewTokens(p.store).Missing(ctx) // p.tokens would not know what is made within 2 seconds
	if missing {
		p.log.Warn("every request is refused until there is a token", "why", access.NoToken)
	}
	return err
}

// storeFirst stores a bootstrap token, unless it is there.
func (p *parts) storeFirst(ctx context.Context, first bootstrap) error {
	if first.token == nil {
		return nil
	}
	ended, err := operate.New(operate.Config{Tokens: p.store, Audit: p.audit}).Bootstrap(ctx, first.by, *first.token)
	if err != nil {
		return fmt.Errorf("the bootstrap token cannot be stored: %w", err)
	}
	if ended {
		p.log.Warn("the bootstrap token has ended and stays refused, because it was revoked or a token with all "+
			"verbs for all tags was made; take it out of the environment", "token", first.token.Name)
	} else {
		p.log.Info("the bootstrap token may do everything until a token with all verbs for all tags is made",
			"token", first.token.Name)
	}
	return nil
}

// isLoopback reports whether the address is reachable from this machine alone.
func isLoopback(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, fmt.Errorf("server.listen: %w", err)
	}
	if host == "localhost" {
		return true, nil
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback(), nil
}

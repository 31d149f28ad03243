package server

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/delaytask/delaytask/internal/server/api"
)

// observer counts requests, and logs a limited number of them each second.
type observer struct {
	log      *slog.Logger
	lines    *rate.Limiter
	failures *rate.Limiter // lines of failed requests, limited apart from the others
	left     atomic.Int64  // requests without a line since the last one
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// mostLines is how many requests are logged each second, and how many failures besides.
const mostLines = 20

func newObserver(log *slog.Logger, registry prometheus.Registerer) (*observer, error) {
	o := &observer{
		log:   log,
		lines: rate.NewLimiter(mostLines, mostLines), failures: rate.NewLimiter(mostLines, mostLines),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "delaytask_http_requests_total", Help: "Requests that were answered, by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "delaytask_http_request_duration_seconds",
			Help:    "How long requests took to be answered; a pop waits for as long as it was asked to.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"route", "method"}),
	}
	for _, c := range []prometheus.Collector{o.requests, o.seconds} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// methods are counted by name; a caller can invent others.
var methods = map[string]bool{"GET": true, "POST": true, "PATCH": true, "DELETE": true, "HEAD": true, "PUT": true,
	"OPTIONS": true}

func (o *observer) observe(ctx context.Context, r api.Request) {
	route, method := r.Route, r.Method
	if route == "" {
		route = "none"
	}
	if !methods[method] {
		method = "other"
	}
	o.requests.WithLabelValues(route, method, strconv.Itoa(r.Status)).Inc()
	o.seconds.WithLabelValues(route, method).Observe(r.Took.Seconds())

	level := slog.LevelInfo
	if r.Status >= 500 {
		level = slog.LevelWarn
	}
	if !o.log.Enabled(ctx, level) {
		return
	}
	lines := o.lines
	if level > slog.LevelInfo {
		lines = o.failures // in an outage every request fails
	}
	if !lines.Allow() {
		o.left.Add(1)
		return
	}
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("route", route), slog.Int("status", r.Status),
		slog.Int64("bytes", r.Bytes), slog.Duration("took", r.Took), slog.String("remote", r.Remote),
	}
	if r.Token != "" {
		attrs = append(attrs, slog.String("token", r.Token))
	}
	if left := o.left.Swap(0); left > 0 {
		attrs = append(attrs, slog.Int64("left_out", left))
	}
	o.log.LogAttrs(ctx, level, "request", attrs...)
}

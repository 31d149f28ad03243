package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/time/rate"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/scheduler"
)

// API serves /v1, /openapi.json, /docs, /healthz and /readyz, and the other handlers of its Config.
type API struct {
	scheduler *scheduler.Scheduler
	log       *slog.Logger
	bodyLimit int
	bodyWait  time.Duration
	stopping  context.Context
	tokens    Authenticator
	checkHost bool
	addresses bool
	hosts     []string
	requests  Requests
	verbs     map[string][]access.Verb // by patterns of routes that take a body
	receivers Receivers
	operator  *operate.Operator
	rooms     *reqbody.Rooms
	// bare is for pages without bodies: they are small, and slow clients of pages with bodies must not delay them.
	bare        *reqbody.Room
	requestWait time.Duration
	compat      LegacyProtocols
	dashboard   Dashboard

	failureLines *rate.Limiter // lines about requests that failed

	inflight *inflight
	spec     huma.API
	handler  http.Handler
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close refuses new requests and waits until all earlier ones have been answered. /healthz, /readyz and /metrics stay
// available. It returns the cause of ctx when that ends first. Waiting pops end with Config.Stopping, not here.
func (a *API) Close(ctx context.Context) error {
	a.inflight.close()
	select {
	case <-a.inflight.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/scheduler"
)

// Config is what the API is made of.
type Config struct {
	Scheduler *scheduler.Scheduler // started; its owner stops it
	Log       *slog.Logger
	BodyLimit int             // bytes of a task's body, as the scheduler has it
	Stopping  context.Context // when it ends, waiting pops return at once

	Tokens    Authenticator // nil: no tokens are asked for
	CheckHost bool          // refuse requests whose Host is neither a loopback name nor one of Hosts
	Addresses bool          // do not refuse an address, be it one of loopback or not
	Hosts     []string      // in lower case

	Audit     *audit.Log // records changes by callers; nil: nothing is recorded
	Requests  Requests   // remembers idempotency keys
	Receivers Receivers  // addresses that are called back
	// Check returns why a task of the tag cannot have the body. Nil: there are no rules besides the rules of a save.
	Check func(tag string, body []byte) error
	// Redactor masks the secrets of tasks and schedules in the answers to reads; nil: secrets are shown. Pops and the
	// answers to saves show a caller its own.
	Redactor *redact.Redactor
	// Observe is called for every request that was answered, with the request's context. May be nil.
	Observe func(context.Context, Request)

	Compat      LegacyProtocols // nil: their routes are not served
	Dashboard   Dashboard       // serves /ui/, where / leads; nil: neither is served
	Metrics     http.Handler    // serves /metrics; nil: it is not served
	OpenMetrics bool            // served without a token
}

// mostFailureLines is how many failures of the database are logged each second.
const mostFailureLines = 5

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
	receivers Receivers
	check     func(tag string, body []byte) error
	operator  *operate.Operator
	observe   func(context.Context, Request)
	room      *semaphore.Weighted // for requests
	pages     *semaphore.Weighted // for pages with bodies
	// bare is for pages without bodies: they are small, and slow clients of pages with bodies must not delay them.
	bare        *semaphore.Weighted
	requestWait time.Duration
	roomWait    time.Duration
	compat      LegacyProtocols
	dashboard   Dashboard

	failureLines *rate.Limiter // lines about requests that failed

	inflight *inflight
	spec     huma.API
	handler  http.Handler
}

// New makes the API. It returns an error when a part of it is missing.
func New(c Config) (*API, error) {
	if c.Scheduler == nil || c.Log == nil || c.Stopping == nil || c.Requests == nil || c.Receivers == nil {
		return nil, errors.New("httpapi: a part of the configuration is missing")
	}
	a := &API{
		scheduler: c.Scheduler, log: c.Log, bodyLimit: c.BodyLimit, stopping: c.Stopping, tokens: c.Tokens,
		bodyWait: reqbody.BodyWait, requestWait: requestWait, roomWait: roomWait,
		room: semaphore.NewWeighted(roomBytes), pages: semaphore.NewWeighted(roomBytes - bareBytes),
		bare:      semaphore.NewWeighted(bareBytes),
		checkHost: c.CheckHost, addresses: c.Addresses, hosts: c.Hosts, requests: c.Requests, receivers: c.Receivers,
		check: c.Check, observe: c.Observe, compat: c.Compat, dashboard: c.Dashboard,
		failureLines: rate.NewLimiter(mostFailureLines, mostFailureLines), inflight: newInflight(),
	}
	if a.check == nil {
		a.check = func(string, []byte) error { return nil }
	}
	a.operator = operate.New(operate.Config{
		Core: core.Of(c.Scheduler), Audit: c.Audit, Check: c.Check, Redactor: c.Redactor, Explain: c.Receivers.Explain,
		Log: c.Log,
	})
	mux, versioned := http.NewServeMux(), http.NewServeMux()
	a.spec = humago.New(versioned, document())
	a.spec.UseMiddleware(unambiguous, unescaped)
	a.describe()
	mux.Handle("/v1/", a.admitted(a.authenticated(a.roomed(a.readBodies(routed(versioned))))))
	// Without this the mux would redirect to /v1/.
	mux.HandleFunc("/v1", func(w http.ResponseWriter, _ *http.Request) { refused(w, noSuchRoute()) })
	mux.HandleFunc("GET /openapi.json", a.openAPI())
	mux.HandleFunc("GET /docs", a.docs())
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	if c.Metrics != nil {
		if !c.OpenMetrics {
			c.Metrics = a.authenticated(metered(c.Metrics))
		}
		mux.Handle("GET /metrics", c.Metrics)
	}
	if c.Compat != nil {
		for _, path := range legacyPaths {
			mux.Handle(path, a.admitted(a.authenticated(a.roomed(c.Compat))))
		}
	}
	if c.Dashboard != nil {
		for _, path := range []string{"/ui/", "/ui/static/", "/ui/login", "/ui/logout"} { // they are counted apart
			mux.Handle(path, a.admitted(c.Dashboard))
		}
		// Without this the mux would redirect to an absolute path, which is another one behind some proxies.
		mux.HandleFunc("/ui", toDashboard)
		mux.HandleFunc("GET /{$}", toDashboard)
	}
	a.handler = a.observed(a.recovered(a.bounded(a.sameOrigin(routed(mux)))))
	return a, nil
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// toDashboard leads from / and /ui to the dashboard.
func toDashboard(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "ui/")
	w.WriteHeader(http.StatusSeeOther)
}

// describe registers every operation.
func (a *API) describe() {
	describeTypes(a.spec.OpenAPI().Components.Schemas)
	a.saveOperations()
	a.taskOperations()
	a.popOperations()
	a.leaseOperations()
	a.tagOperations()
	a.clusterOperations()
	a.forecastOperation()
	a.seriesOperation()
	a.overviewOperation()
	a.auditOperation()
	a.bulkOperations()
	a.receiverOperations()
	a.scheduleOperations()
	completeDocument(a.spec.OpenAPI())
}

// document is the OpenAPI document before its operations. The framework serves none of its own pages.
func document() huma.Config {
	config := huma.DefaultConfig("delaytask", scheduler.Version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // no links to schemas in answers
	config.Formats = map[string]huma.Format{mediaJSON: strictJSON, "json": strictJSON}
	config.RejectUnknownQueryParameters = true
	config.Info.Description = "Durable, punctual delayed tasks. Ids and tokens are strings, times are RFC 3339 in " +
		"UTC, durations are texts such as \"30m\" or, in JSON, numbers of milliseconds. What is refused " +
		"comes as application/problem+json with a code."
	config.Info.Contact = &huma.Contact{Name: "delaytask", URL: "https://github.com/delaytask/delaytask"}
	config.Info.License = &huma.License{Name: "MIT", Identifier: "MIT"}
	config.Servers = []*huma.Server{{URL: "/"}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "an access token, made by: delaytask token create"},
	}
	config.Tags = groups
	config.Security = []map[string][]string{{}, {"bearer": {}}}
	return config
}

// operation fills in what all operations share. Bodies are read and checked before the framework sees them.
func (a *API) operation(method, path, id, summary, description, group string) huma.Operation {
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Description: description, Tags: []string{group},
		SkipValidateBody: true, MaxBodyBytes: -1, BodyReadTimeout: -1, Middlewares: huma.Middlewares{a.timed},
	}
}

// The groups that the document shows operations in.
const (
	groupTasks     = "tasks"
	groupPull      = "pull"
	groupOperate   = "operate"
	groupPush      = "push"
	groupSchedules = "schedules"
)

// groups are in the order of the page.
var groups = []*huma.Tag{
	{Name: groupTasks, Description: "Save tasks, look at them, change them, one or all that match."},
	{Name: groupPull, Description: "Take due tasks, and end them by their lease tokens."},
	{Name: groupPush, Description: "Register addresses that the service calls with due tasks."},
	{Name: groupSchedules, Description: "Run tasks again and again, and see what became of each tick."},
	{Name: groupOperate, Description: "See how all stands, and pause and resume tags."},
}

// requestWait is how long a request waits for the database. Most clients give up after 30 s, and shall get an answer
// before. Pops have a wait of their own.
const requestWait = 15 * time.Second

// timed ends the context of an operation that takes longer.
func (a *API) timed(ctx huma.Context, next func(huma.Context)) {
	limited, cancel := context.WithTimeout(ctx.Context(), a.requestWait)
	defer cancel()
	next(huma.WithContext(ctx, limited))
}

package api

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/time/rate"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/server/reqbody"
)

// New makes the API. It returns an error when a part of it is missing.
func New(c Config) (*API, error) {
	if c.Scheduler == nil || c.Log == nil || c.Stopping == nil || c.Requests == nil || c.Receivers == nil {
		return nil, errors.New("httpapi: a part of the configuration is missing")
	}
	a := &API{
		scheduler: c.Scheduler, log: c.Log, bodyLimit: c.BodyLimit, stopping: c.Stopping, tokens: c.Tokens,
		bodyWait: reqbody.BodyWait, requestWait: requestWait,
		rooms: cmp.Or(c.Rooms, reqbody.NewRooms(reqbody.Connections)), bare: reqbody.NewRoom(bareBytes, bareBytes/2),
		checkHost: c.CheckHost, addresses: c.Addresses, hosts: c.Hosts, requests: c.Requests, receivers: c.Receivers,
		compat: c.Compat, dashboard: c.Dashboard,
		failureLines: rate.NewLimiter(mostFailureLines, mostFailureLines), inflight: newInflight(),
	}
	a.operator = operate.New(operate.Config{
		Core: core.Of(c.Scheduler), Audit: c.Audit, Check: c.Check, Redactor: c.Redactor, Explain: c.Receivers.Explain,
		Log: c.Log,
	})
	mux, versioned := http.NewServeMux(), http.NewServeMux()
	a.spec = humago.New(versioned, document())
	a.spec.UseMiddleware(unambiguous, unescaped)
	a.describe()
	var err error
	if a.verbs, err = verbsByRoute(a.spec.OpenAPI()); err != nil {
		return nil, err
	}
	served := a.entitled(versioned, a.readBodies(a.inTurn(versioned)))
	mux.Handle("/v1/", a.admitted(a.authenticated(routed(versioned, served))))
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
			mux.Handle(path, a.admitted(a.authenticated(c.Compat)))
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
	a.handler = observed(c.Observe, a.recovered(a.bounded(a.sameOrigin(routed(mux, mux)))))
	return a, nil
}

// toDashboard leads from / and /ui to the dashboard.
func toDashboard(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "ui/")
	w.WriteHeader(http.StatusSeeOther)
}

// describe registers every operation.
func (a *API) describe() {
	describeTypes(a.spec.OpenAPI().Components.Schemas)
	a.saveOperation()
	a.batchOperation()
	a.taskOperations()
	a.taskBodyOperations()
	a.listOperation()
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
	a.previewOperation()
	a.scheduleOperations()
	a.listScheduleOperation()
	a.operateScheduleOperations()
	completeDocument(a.spec.OpenAPI())
}

package dashboard

import (
	"net/http"
	"strings"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/scheduler"
)

// New returns the pages of the scheduler, which may but need not be started. The caller stops it after the last
// request. New returns [ErrNoWho], and an error for an unusable option.
func New(s *scheduler.Scheduler, o Options) (http.Handler, error) {
	d, err := newDashboard(s, o)
	if err != nil {
		return nil, err
	}
	return d.routes(), nil
}

// routes maps what is asked for to pages and actions. A GET changes nothing.
func (d *dashboard) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/{name}", d.files)
	mux.Handle("GET /find", d.guarded(http.HandlerFunc(d.find)))
	mux.Handle("POST /settings", d.guarded(http.HandlerFunc(d.settings)))
	for pattern, p := range pages {
		mux.Handle("GET "+pattern, d.guarded(d.page(p)))
	}
	for pattern, a := range actions {
		mux.Handle("POST "+pattern, d.guarded(d.action(a)))
	}
	unrouted := d.guarded(d.unrouted(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			unrouted.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// unrouted answers for a path without a page, and for a method that a path does not take.
func (d *dashboard) unrouted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, known := d.who(w, r)
		if !known {
			return
		}
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			other := *r
			other.Method = method
			if _, pattern := mux.Handler(&other); pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			d.fail(w, v, errNoPage)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		d.fail(w, v, errMethod)
	})
}

// pages lists the pages by their paths. Links between them count slashes, see view.Root.
var pages = map[string]page{
	"/{$}": {
		template: "overview", verb: access.Observe, cost: 12, conns: mostReads, show: (*view).overview,
	},
	"/tasks":            {template: "tasks", verb: access.Read, cost: 5, show: (*view).tasks},
	"/tasks/{id}":       {template: "task", verb: access.Read, show: (*view).task},
	"/tags":             {template: "tags", verb: access.Observe, cost: 10, conns: mostReads, show: (*view).tags},
	"/tags/{tag}":       {template: "tag", verb: access.Observe, cost: 8, show: (*view).tag},
	"/load":             {template: "load", verb: access.Observe, show: (*view).load},
	"/failures":         {template: "failures", verb: access.Read, cost: 5, show: (*view).failures},
	"/nodes":            {template: "nodes", verb: access.Observe, show: (*view).nodes},
	"/nodes/{number}":   {template: "node", verb: access.Observe, show: (*view).node},
	"/receivers":        {template: "receivers", verb: access.Observe, show: (*view).receivers},
	"/receivers/{id}":   {template: "receiver", verb: access.Observe, show: (*view).receiver},
	"/schedules":        {template: "schedules", verb: access.Read, show: (*view).schedules},
	"/schedules/{name}": {template: "schedule", verb: access.Read, show: (*view).schedule},
	"/bulk":             {template: "bulk", verb: access.Change, show: (*view).preview},
	"/changes":          {template: "changes", verb: access.Read, show: (*view).changes},
	"/bulk/{id}":        {template: "run", verb: access.Read, show: (*view).run},
	"/audit":            {template: "audit", verb: access.Audit, show: (*view).entries},
}

// actions lists what changes something.
var actions = map[string]action{
	"/tasks":                   {do: (*view).changeTasks},
	"/tasks/{id}/{verb}":       {do: (*view).changeTask},
	"/bulk":                    {do: (*view).startBulk},
	"/bulk/{id}/stop":          {do: (*view).stopRun},
	"/tags/{tag}/{verb}":       {do: (*view).changeTag},
	"/schedules/{name}/{verb}": {do: (*view).changeSchedule},
	"/receivers/{id}/delete":   {do: (*view).removeReceiver},
}

package dashboard

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/scheduler"
)

// Options configures a dashboard.
type Options struct {
	// Who returns the user that a request comes from, or [ErrSignIn]. Any other error is logged and answered with 503.
	// It must be set.
	Who func(*http.Request) (User, error)
	// SignIn is where a reader without a user is sent, as a URL or relative to the dashboard. The path of the page is
	// added as the parameter next. Default "": such requests are answered with 401.
	SignIn string
	// SignOut is where the form behind the user's name is sent by POST. Default "": no form.
	SignOut string
	// ReadOnly takes all actions away from all users.
	ReadOnly bool
	// FrameAncestors lists the origins that may show the pages in a frame, as Content-Security-Policy takes them.
	// Default: none.
	FrameAncestors []string
	// Down reports whether this process leaves the host of a receiver's address alone because it does not answer, and
	// when a call tries it again. The method of a webhook.Client of package processor/webhook does. Default: the pages
	// do not say it.
	Down func(address string) (again time.Time, down bool)
	// Redact returns a text of a task of the tag as people may see it: a body, an error, or a header as a JSON object
	// with its name and value. Default: values of members named like password, token or secret, and credentials in
	// texts, are masked.
	Redact func(tag, text string) string
	// RedactBeginning returns the beginning of such a text, of about as many bytes. It spares pages the rest of long
	// texts. Default: the beginning of what Redact returns.
	RedactBeginning func(tag, text string, bytes int) string
	// Check returns why a task of the tag cannot have the body that a user gives it. Its text is shown to the user.
	// Default: there are no rules besides the rules of a save.
	Check func(tag string, body []byte) error
	// NoAudit leaves what users do out of the audit log. Default: it is recorded, and without an entry nothing is done.
	NoAudit bool
	// Log gets what goes wrong. Default [slog.Default].
	Log *slog.Logger
}

// ErrSignIn is returned by Options.Who for a request without a user.
var ErrSignIn = errors.New("sign in first")

// ErrNoWho is returned by [New] where Options.Who is missing.
var ErrNoWho = errors.New("dashboard: Options.Who is missing; without it everybody could do everything")

type dashboard struct {
	scheduler *scheduler.Scheduler
	store     store.Store
	o         Options
	log       *slog.Logger
	audit     *audit.Log // nil: nothing is recorded
	operator  *operate.Operator
	server    server
	templates templates
	files     files
	reads     *reads
	keep      *keep
	policy    string // the Content-Security-Policy
	handler   http.Handler
}

// New returns the pages of the scheduler, which may but need not be started. The caller stops it after the last
// request. New returns [ErrNoWho], and an error for an unusable option.
func New(s *scheduler.Scheduler, o Options) (http.Handler, error) {
	if o.Who == nil {
		return nil, ErrNoWho
	}
	if s == nil {
		return nil, errors.New("dashboard: there is no scheduler")
	}
	d := &dashboard{
		scheduler: s, store: core.Of(s).Store(), o: o, log: o.Log, reads: newReads(), keep: newKeep(),
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	d.o.mask()
	if !o.NoAudit {
		d.audit = audit.New(audit.Config{Store: d.store, Log: d.log})
	}
	d.operator = operate.New(operate.Config{
		Core: core.Of(s), Audit: d.audit, Check: o.checked, Log: d.log, FindIn: readTime,
		Redactor: new(redact.Redactor),
	})
	var err error
	if d.policy, err = policyOf(o.FrameAncestors); err != nil {
		return nil, err
	}
	if d.files, err = newFiles(); err != nil {
		return nil, err
	}
	if d.templates, err = newTemplates(d.files); err != nil {
		return nil, err
	}
	d.handler = d.routes()
	return d, nil
}

// mask completes the functions that mask.
func (o *Options) mask() {
	switch {
	case o.Redact == nil:
		o.Redact, o.RedactBeginning = redact.Text, new(redact.Redactor).Beginning
	case o.RedactBeginning == nil:
		o.RedactBeginning = func(tag, text string, bytes int) string {
			return row.Shorten(o.Redact(tag, text), bytes)
		}
	}
}

func (d *dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

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

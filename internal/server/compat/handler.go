package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/processor"
)

// Config is what the routes are made of. Who calls is in the context of a request, as package access puts it there:
// without that nobody may do anything.
type Config struct {
	Scheduler *delaytask.Scheduler // started; its owner stops it
	Log       *slog.Logger
	BodyLimit int             // bytes of a task's body, as the scheduler has it; 0: its default
	Stopping  context.Context // when it ends, waiting pops return at once

	// OtherNames says that the server answers other names than those of loopback. Over plain HTTP a browser does not
	// say there which page sends a GET, so GETs are answered for the topics of GetTopics alone.
	OtherNames bool
	GetTopics  []string // patterns, as [access.ParseTags] returns them

	// Check is what a tag demands of its tasks besides; its error is the answer. nil: nothing.
	Check func(delaytask.Item) error
}

// Handler serves the four routes. Make one with [New].
type Handler struct {
	scheduler *delaytask.Scheduler
	log       *slog.Logger
	bodyLimit int
	stopping  context.Context
	check     func(delaytask.Item) error
	origin    *http.CrossOriginProtection
	routes    map[string]route

	otherNames bool
	getTopics  []string
}

// route is one path with its only method.
type route struct {
	method string
	serve  func(w http.ResponseWriter, r *http.Request) (answer, error)
}

// New returns the handler of the four routes. It answers their paths alone, each with one method.
func New(c Config) (*Handler, error) {
	if c.Scheduler == nil || c.Log == nil || c.Stopping == nil {
		return nil, errors.New("compat: a part of the configuration is missing")
	}
	h := &Handler{
		scheduler: c.Scheduler, log: c.Log, bodyLimit: cmp.Or(c.BodyLimit, processor.DefaultBodyLimit),
		stopping: c.Stopping,
		check:    c.Check, origin: http.NewCrossOriginProtection(), otherNames: c.OtherNames, getTopics: c.GetTopics,
	}
	if h.check == nil {
		h.check = func(delaytask.Item) error { return nil }
	}
	h.routes = map[string]route{
		"/compat/topics": {http.MethodPost, h.command},
		"/o/add":         {http.MethodPost, h.add},
		"/o/get":         {http.MethodGet, h.get},
		"/o/complete":    {http.MethodGet, h.complete},
	}
	return h, nil
}

// patience is how long a request waits for the database beside the wait that it asks for itself.
const patience = 15 * time.Second

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, ok := h.routes[r.URL.Path]
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "there is no such path")
	case r.Method != to.method: // HEAD too: a get takes a job
		w.Header().Set("Allow", to.method)
		refuse(w, http.StatusMethodNotAllowed, "use "+to.method)
	case h.crossOrigin(r):
		refuse(w, http.StatusForbidden, "a web page of another origin may not call this server")
	default:
		a, err := to.serve(w, r)
		if err != nil {
			h.fail(w, err)
			return
		}
		a.Success = true
		write(w, http.StatusOK, a)
	}
}

// allow refuses a caller who may not do this to jobs of the tag; of any tag at all when it is "".
func allow(ctx context.Context, verb access.Verb, tag string) error {
	if c := access.From(ctx); c.May(verb, tag) || tag == "" && c.SomeTag(verb) {
		return nil
	}
	return &refusal{http.StatusForbidden, fmt.Sprintf("this token may not %s jobs of this topic", verb)}
}

// Any web page can make a browser send a GET, and here GETs take jobs and complete them.

// clientHeader is a header that no web page can add: the browser would ask this server for permission first.
const clientHeader = "Delaytask-Client"

// crossOrigin reports whether the browser says that a web page of another origin asks. It judges every request as one
// that changes something.
func (h *Handler) crossOrigin(r *http.Request) bool {
	unsafe := *r
	unsafe.Method = http.MethodPost
	return h.origin.Check(&unsafe) != nil
}

// checkGet refuses a GET that a web page may have sent although its browser says nothing.
func (h *Handler) checkGet(r *http.Request, topic string) error {
	switch {
	case h.otherNames && !access.Match(h.getTopics, topic):
		return &refusal{http.StatusForbidden,
			"GET is off for this topic: this server is called by other names than loopback, " +
				"where any web page can send a GET. Use POST /v1/tags/{tag}/pop, or let the operator add the topic " +
				"to server.get_topics"}
	case r.Header.Get(clientHeader) != "":
		return nil
	case h.otherNames && access.From(r.Context()).Name() == "", silentBrowser(r):
		return &refusal{http.StatusForbidden, "a web page may have sent this GET: send the header " + clientHeader +
			": 1 with it, which no web page can add"}
	}
	return nil
}

// silentBrowser reports whether a browser sends the request and does not say for which page. Browsers are silent over
// plain HTTP unless they call a loopback name. Behind a proxy the token need not be the client's, nor the name the one
// that it called.
func silentBrowser(r *http.Request) bool {
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") && r.Header.Get("Sec-Fetch-Site") == ""
}

package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/processor"
)

// Config is what the routes are made of. Who calls is in the context of a request, as package access puts it there: without
// that nobody may do anything.
type Config struct {
	Scheduler *delaytask.Scheduler // started; its owner stops it
	Log       *slog.Logger
	BodyLimit int             // bytes of a task's body, as the scheduler has it; 0: its default
	Stopping  context.Context // when it ends, waiting pops return at once

	// OtherNames says that the server answers other names than those of loopback. Over plain HTTP a browser does not say there which
	// page sends a GET, so GETs are answered for the topics of GetTopics alone.
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
		scheduler: c.Scheduler, log: c.Log, bodyLimit: cmp.Or(c.BodyLimit, processor.DefaultBodyLimit), stopping: c.Stopping,
		check: c.Check, origin: http.NewCrossOriginProtection(), otherNames: c.OtherNames, getTopics: c.GetTopics,
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

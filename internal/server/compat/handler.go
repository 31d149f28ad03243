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

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/scheduler"
)

// Config is what the routes are made of. Package access puts the caller into the context of a request: without one
// every request is refused.
type Config struct {
	Scheduler *scheduler.Scheduler // started; its owner stops it
	Log       *slog.Logger
	BodyLimit int             // bytes of a task's body, as the scheduler has it; 0: its default
	Stopping  context.Context // when it ends, waiting pops return at once

	Rooms *reqbody.Rooms // for what requests hold; nil: as large as in a service

	// OtherNames reports that the server answers other names than loopback's. There, over plain HTTP, a browser
	// does not name the page that sends a GET. So GETs are served for the topics of GetTopics alone.
	OtherNames bool
	GetTopics  []string // patterns, as [access.ParseTags] returns them

	// Check returns why a task of the tag cannot have the body; its error is the answer. May be nil.
	Check func(tag string, body []byte) error
}

// Handler serves the four routes. Make one with [New].
type Handler struct {
	cfg    Config
	origin *http.CrossOriginProtection
	routes map[string]route
}

// route is one path with its only method.
type route struct {
	method string
	serve  func(w http.ResponseWriter, r *http.Request) (answer, error)
}

// New returns the handler of the four routes. It serves their paths alone, each with one method.
func New(c Config) (*Handler, error) {
	if c.Scheduler == nil || c.Log == nil || c.Stopping == nil {
		return nil, errors.New("compat: a part of the configuration is missing")
	}
	c.BodyLimit = cmp.Or(c.BodyLimit, request.DefaultBodyLimit)
	c.Rooms = cmp.Or(c.Rooms, reqbody.NewRooms(reqbody.Connections))
	if c.Check == nil {
		c.Check = func(string, []byte) error { return nil }
	}
	h := &Handler{cfg: c, origin: http.NewCrossOriginProtection()}
	h.routes = map[string]route{
		"/compat/topics": {http.MethodPost, h.command},
		"/o/add":         {http.MethodPost, h.add},
		"/o/get":         {http.MethodGet, h.get},
		"/o/complete":    {http.MethodGet, h.complete},
	}
	return h, nil
}

// placeKey is the key of the place in memory that an answer takes.
type placeKey struct{}

// patience is how long a request waits for the database, in addition to its own wait.
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
		defer h.cfg.Rooms.Hold(w, r, h.mostBytes(), held)()
		place := h.cfg.Rooms.Answers.Open(reqbody.CallerOf(r))
		defer place.Leave()
		a, err := to.serve(w, r.WithContext(context.WithValue(r.Context(), placeKey{}, place)))
		place.Unread(w)
		if err != nil {
			h.fail(w, err)
			return
		}
		a.Success = true
		write(w, http.StatusOK, a)
	}
}

// allow refuses a caller without this right for jobs of the tag, or for some tag when it is "".
func allow(ctx context.Context, verb access.Verb, tag string) error {
	if c := access.From(ctx); c.May(verb, tag) || tag == "" && c.SomeTag(verb) {
		return nil
	}
	return &refusal{http.StatusForbidden, fmt.Sprintf("this token may not %s jobs of this topic", verb)}
}

// Any web page can have a browser send a GET, and here GETs take jobs and complete them.

// clientHeader is a header that no web page can add without a preflight request.
const clientHeader = "Delaytask-Client"

// crossOrigin reports whether the browser names a web page of another origin. It treats every request as one that
// changes something.
func (h *Handler) crossOrigin(r *http.Request) bool {
	unsafe := *r
	unsafe.Method = http.MethodPost
	return h.origin.Check(&unsafe) != nil
}

// checkGet refuses a GET that a web page may have sent although the browser does not name one.
func (h *Handler) checkGet(r *http.Request, topic string) error {
	switch {
	case h.cfg.OtherNames && !access.Match(h.cfg.GetTopics, topic):
		return &refusal{http.StatusForbidden,
			"GET is off for this topic: this server is called by other names than loopback, " +
				"where any web page can send a GET. Use POST /v1/tags/{tag}/pop, or let the operator add the topic " +
				"to server.get_topics"}
	case r.Header.Get(clientHeader) != "":
		return nil
	case h.cfg.OtherNames && access.From(r.Context()).Name() == "", silentBrowser(r), navigates(r):
		return &refusal{http.StatusForbidden, "a web page may have sent this GET: send the header " + clientHeader +
			": 1 with it, which no web page can add"}
	}
	return nil
}

// navigates reports whether a browser opens the address. It names no page where a link or a typed address leads here by
// way of a redirect. No program navigates.
func navigates(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Mode") == "navigate" }

// silentBrowser reports whether a browser sends the request without naming the page. Browsers name none over plain HTTP
// unless they call a loopback name. Behind a proxy, token and name need not be the client's own.
func silentBrowser(r *http.Request) bool {
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") && r.Header.Get("Sec-Fetch-Site") == ""
}

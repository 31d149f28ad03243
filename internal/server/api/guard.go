package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/wire"
)

// recovered confines a panic to its own request.
func (a *API) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v) // the server's own way to cut a connection
			}
			a.log.Error("a request panicked", "method", r.Method, "route", r.Pattern, "panic", v, "stack",
				string(debug.Stack()))
			a.refuse(w, r, wire.NewProblem(http.StatusInternalServerError, wire.CodeInternal,
				"something unexpected happened; the log of the service says more"))
		}()
		next.ServeHTTP(w, r)
	})
}

// answerWait is how long the answer to a request may take once it is read; a waiting pop takes longest.
const answerWait = reqbody.LongestWait + 30*time.Second

// bounded disconnects a client that does not read its answer.
func (a *API) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A recorder in a test has no deadlines; every real connection has.
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(a.bodyWait + answerWait))
		if r.Body != nil && r.Body != http.NoBody {
			// The server waits for what is left of a body before it answers, also for a request which is
			// refused.
			_ = control.SetReadDeadline(time.Now().Add(a.bodyWait))
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses a browser's request from another origin. It also refuses a host that is not a name of this server:
// a page could have its own name lead here.
func (a *API) sameOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.refuse(w, r, wire.NewProblem(http.StatusForbidden, wire.CodeCrossOrigin,
			"a web page of another origin may not call this server"))
	}))
	guarded := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.checkHost && !a.knownHost(r.Host) {
			a.refuse(w, r, wire.NewProblem(http.StatusMisdirectedRequest, wire.CodeMisdirected,
				"this server is not known by that name; call it by a loopback address, or add the name to "+
					"server.hosts"))
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

func (a *API) knownHost(hostport string) bool {
	host := HostName(hostport)
	_, err := netip.ParseAddr(host)
	return IsLoopbackName(host) || slices.Contains(a.hosts, host) || a.addresses && err == nil
}

// HostName returns the host of a request without its port, in lower case.
func HostName(hostport string) string {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// IsLoopbackName reports whether a browser names the page that sends a request to the host, in lower case, even over
// plain HTTP.
func IsLoopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	// Browsers do not name it to a loopback address of IPv4 within IPv6.
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() && !address.Is4In6()
}

// routed answers requests without a route in the same shape as all others. It passes on the others.
func routed(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || r.URL.Path == "*" { // neither is about a path
			w.Header().Set("Allow", "GET, POST, PUT, PATCH, DELETE")
			refused(w, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed,
				"this server is no proxy; /docs lists what it takes"))
			return
		}
		if clean := path.Clean(r.URL.EscapedPath()); clean != r.URL.EscapedPath() && clean+"/" != r.URL.EscapedPath() {
			refused(w, noSuchRoute())
			return
		}
		handler, pattern := mux.Handler(r)
		versioned := strings.HasPrefix(r.URL.Path, "/v1/")
		switch {
		case !isPlain(r.URL.EscapedPath(), pattern):
			refused(w, noSuchRoute())
		case pattern == "":
			refuseUnrouted(w, r, handler)
		case versioned && r.Method == http.MethodHead:
			w.Header().Set("Allow", http.MethodGet)
			refused(w, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed, "use GET"))
		default:
			noteRoute(r.Context(), pattern)
			next.ServeHTTP(w, r)
		}
	})
}

// isPlain reports whether a path writes all that its pattern has as the pattern does. A proxy before the service may
// have rules for paths, and must not be deceived by /%6detrics.
func isPlain(path, pattern string) bool {
	_, wanted, _ := strings.Cut(pattern, "/")
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, want := range strings.Split(wanted, "/") {
		if want != "" && !strings.HasPrefix(want, "{") && (i >= len(segments) || segments[i] != want) {
			return false
		}
	}
	return !strings.HasPrefix(wanted, "ui/") || !encodedLetter.MatchString(path)
}

// encodedLetter is a letter or a digit that needs no encoding. The pages of the dashboard have patterns of their own.
var encodedLetter = regexp.MustCompile(`%(3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])`)

// refuseUnrouted takes the methods of the path from the mux's own answer.
func refuseUnrouted(w http.ResponseWriter, r *http.Request, answer http.Handler) {
	look := &headersOnly{header: http.Header{}}
	answer.ServeHTTP(look, r)
	allowed := strings.ReplaceAll(look.header.Get("Allow"), "GET, HEAD", "GET")
	if allowed == "" {
		refused(w, noSuchRoute())
		return
	}
	w.Header().Set("Allow", allowed)
	refused(w, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed, "this path takes "+allowed))
}

func noSuchRoute() *wire.Problem {
	return wire.NewProblem(http.StatusNotFound, wire.CodeNoSuchRoute,
		"there is no such path; /docs lists those that there are")
}

// headersOnly is a response of which only the headers are kept.
type headersOnly struct{ header http.Header }

func (g *headersOnly) Header() http.Header         { return g.header }
func (g *headersOnly) Write(p []byte) (int, error) { return len(p), nil }
func (g *headersOnly) WriteHeader(int)             {}

// unambiguous refuses requests of which a part would be ignored: a malformed query, a duplicate parameter, one that is
// empty and must not be, and a body where none is accepted.
func unambiguous(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if p := ambiguity(r, ctx.Operation()); p != nil {
		refused(w, p)
		return
	}
	next(ctx)
}

// unescaped reads the names in the path, of which two cannot be written as they are.
func unescaped(ctx huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(ctx)
	for _, p := range ctx.Operation().Parameters {
		if p.In == "path" {
			r.SetPathValue(p.Name, wire.FromSegment(r.PathValue(p.Name)))
		}
	}
	next(ctx)
}

func ambiguity(r *http.Request, op *huma.Operation) *wire.Problem {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidParameter,
			"the query cannot be read: write special characters as %XX")
	}
	for name, values := range query {
		if len(values) > 1 && !repeatable(op, name) {
			return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidParameter,
				fmt.Sprintf("the parameter %.40q comes more than once", name))
		}
		if values[0] == "" && wantsText(op, name) {
			return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidParameter,
				fmt.Sprintf("the parameter %.40q is empty: give it a value, or leave it out", name))
		}
	}
	if len(r.Header.Values("Idempotency-Key")) > 1 {
		return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidHeader, "there is more than one Idempotency-Key")
	}
	if op.RequestBody == nil && r.ContentLength > 0 {
		// Some clients send an empty object with every POST.
		if body, err := io.ReadAll(r.Body); err != nil || string(bytes.TrimSpace(body)) != "{}" {
			return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON,
				"this call takes no body; its parameters go into the query")
		}
	}
	return nil
}

func repeatable(op *huma.Operation, name string) bool {
	return isParameter(op, name, func(s *huma.Schema) bool { return s.Type == huma.TypeArray })
}

// wantsText reports whether an empty parameter is invalid. To take it as a missing one would drop a condition.
func wantsText(op *huma.Operation, name string) bool {
	return isParameter(op, name, func(s *huma.Schema) bool { return s.MinLength != nil && *s.MinLength > 0 })
}

// isParameter reports whether the query may have the parameter, and it is such a one.
func isParameter(op *huma.Operation, name string, such func(*huma.Schema) bool) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool {
		return p.In == "query" && p.Name == name && p.Schema != nil && such(p.Schema)
	})
}

// inTurn makes requests that read many rows wait for their turn.
func (a *API) inTurn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if path != bulkPath && path != previewPath &&
			(r.Method != http.MethodGet || strings.HasPrefix(path, "/v1/tasks/")) {
			next.ServeHTTP(w, r)
			return
		}
		turn, err := a.rooms.Read(w, r)
		if err != nil {
			refused(w, wire.NewProblem(http.StatusTooManyRequests, wire.CodeTooManyRequests,
				"other reads have taken all turns of this caller, or of the service; try again"))
			return
		}
		defer turn.Leave()
		next.ServeHTTP(turn, r)
	})
}

// admitted passes requests on until Close.
func (a *API) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.inflight.enter() {
			w.Header().Set("Connection", "close") // the next request may reach another server
			a.refuse(w, r, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeStopping,
				"the service is stopping; try again"))
			return
		}
		defer a.inflight.leave()
		next.ServeHTTP(w, r)
	})
}

package api

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Request describes a request that has been answered.
type Request struct {
	Method string
	Route  string // the pattern that it matched, such as /v1/tasks/{id}; "" when none did
	Status int
	Bytes  int64 // of the answer's body
	Took   time.Duration
	Remote string
	Token  string // the name of the caller's token; "" when it has none that is good
}

type requestKey struct{}

// observed reports every request once it has been answered. It reports patterns and not paths: there are few of them,
// and they contain no keys of tasks.
func observed(observe func(context.Context, Request), next http.Handler) http.Handler {
	if observe == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		request := &Request{Method: r.Method, Remote: r.RemoteAddr}
		answer := &answer{ResponseWriter: w}
		defer func() {
			request.Status, request.Bytes, request.Took = answer.code(), answer.bytes, time.Since(began)
			observe(r.Context(), *request)
		}()
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), requestKey{}, request)))
	})
}

// noteRoute notes the pattern of the request for observed. The innermost mux wins.
func noteRoute(ctx context.Context, pattern string) {
	if request, ok := ctx.Value(requestKey{}).(*Request); ok {
		if _, path, found := strings.Cut(pattern, " "); found {
			pattern = path
		}
		request.Route = pattern
	}
}

// NoteToken notes the name of the caller's token for Config.Observe, by the context of the request.
func NoteToken(ctx context.Context, name string) {
	if request, ok := ctx.Value(requestKey{}).(*Request); ok {
		request.Token = name
	}
}

// answer notes the status and the size of the answer.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (a *answer) code() int {
	if a.status == 0 {
		return http.StatusOK
	}
	return a.status
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

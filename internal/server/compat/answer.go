package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

// answer is the answer of both protocols. Error is empty exactly when Success is true.
type answer struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
	ID      string `json:"id"`
	Value   string `json:"value"`
	Jobs    []job  `json:"jobs,omitzero"` // for a pop with max
	Late    bool   `json:"late,omitzero"` // of a finish: the TTR had ended
}

// job is one of several that a pop takes.
type job struct {
	ID    string `json:"id"`
	Value string `json:"value"`
}

// clientError is a sentence for the caller about the request or the state that it met.
type clientError string

func (c clientError) Error() string { return string(c) }

// refusal is an answer with a status of its own: about the request as such, or about a service that is unavailable now.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// forCaller are errors of the library whose text is for the caller.
var forCaller = []error{
	delaytask.ErrInvalidTag, delaytask.ErrInvalidKey, delaytask.ErrInvalidBody, delaytask.ErrInvalidDelay,
	delaytask.ErrDelayTooLong, delaytask.ErrInvalidTTR, delaytask.ErrInvalidOption, delaytask.ErrLeaseLost,
	delaytask.ErrFinished, delaytask.ErrContended,
}

// unable are errors of a service that is unavailable now.
var unable = []error{delaytask.ErrOverloaded, delaytask.ErrClosed, delaytask.ErrNotStarted, scheduler.ErrNotReady}

// fail answers with an error. An unknown error comes from the database. Its text may name hosts and users, so it goes
// to the log and not to the caller.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	if refused, ok := errors.AsType[*refusal](err); ok {
		refuse(w, refused.status, refused.text)
		return
	}
	if p, ok := errors.AsType[*wire.Problem](err); ok { // of the check of tokens
		h.Refuse(w, p.Status, p.Detail)
		return
	}
	isErr := func(known error) bool { return errors.Is(err, known) }
	_, about := errors.AsType[clientError](err)
	switch {
	case errors.Is(err, delaytask.ErrBodyTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, err.Error())
		return
	case about || slices.ContainsFunc(forCaller, isErr):
		refuse(w, http.StatusOK, err.Error())
		return
	case slices.ContainsFunc(unable, isErr):
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if !errors.Is(err, context.Canceled) { // the client has gone
		// The outermost error may name a task by its key, which is the client's own.
		h.cfg.Log.Error("a request of the compatibility routes failed", "err", cmp.Or(errors.Unwrap(err), err))
	}
	refuse(w, http.StatusServiceUnavailable,
		"the database did not answer as it should; the log of the service says why. Try again")
}

// Refuse answers a request that a layer before the routes refuses.
func (h *Handler) Refuse(w http.ResponseWriter, status int, text string) { refuse(w, status, text) }

func refuse(w http.ResponseWriter, status int, text string) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	write(w, status, answer{Error: text})
}

func write(w http.ResponseWriter, status int, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // a cache must not answer a GET that takes a job
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(a) // the client may be gone
}

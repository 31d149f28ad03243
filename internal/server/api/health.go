package api

import (
	"context"
	"net/http"
	"time"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
)

// readyWait is how long readyz waits for the database.
const readyWait = time.Second

// healthz answers that the process is alive.
func (a *API) healthz(w http.ResponseWriter, _ *http.Request) { say(w, "ok\n") }

// readyz answers whether tasks can be saved and run now, and adds the warning that an operator has to act on.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	if a.stopping.Err() != nil {
		refused(w, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeStopping, "the service is stopping"))
		return
	}
	if err := a.scheduler.Ready(ctx); err != nil {
		a.log.Warn("not ready", "err", err)
		refused(w, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeNotReady,
			"the database does not answer, cannot be read or written, or its clock or this node's number is not "+
				"known; the log says which"))
		return
	}
	if a.tokens != nil {
		missing, err := a.tokens.Missing(ctx)
		switch {
		case err != nil:
			refused(w, a.uncheckable(err))
			return
		case missing:
			refused(w, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeNotReady, access.NoToken))
			return
		}
	}
	text := "ready\n"
	if warning := core.Of(a.scheduler).Warning(); warning != "" {
		text += "warning: " + warning + "\n"
	}
	say(w, text)
}

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text)) // the caller may be gone
}

package api

import (
	"context"
	"net/http"
	"time"

	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/wire"
)

// readyWait is how long the database may take to show that it works. Whoever asks often waits no longer than this.
const readyWait = time.Second

// healthz says that the process answers.
func (a *API) healthz(w http.ResponseWriter, _ *http.Request) { say(w, "ok\n") }

// readyz says whether tasks can be saved and run at this moment, and below that what somebody has to mend all the same.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	if a.stopping.Err() != nil {
		refused(w, problemOf(http.StatusServiceUnavailable, wire.CodeStopping, "the service is stopping"))
		return
	}
	if err := a.scheduler.Ready(ctx); err != nil {
		a.log.Warn("not ready", "err", err)
		refused(w, problemOf(http.StatusServiceUnavailable, wire.CodeNotReady,
			"the database does not answer, cannot be read or written, or its clock or this node's number is not "+
				"known; the log says which"))
		return
	}
	text := "ready\n"
	if warning := bridge.Warning(a.scheduler); warning != "" {
		text += "warning: " + warning + "\n"
	}
	say(w, text)
}

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text)) // a caller that is gone needs no answer
}

package push

import (
	"context"
	"fmt"
	"net/http"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
)

// Every process reads all live workers each second, and whoever may register can make up addresses. Those that registered at the
// same moment may go beyond a bound by as many.
const (
	mostOfApp  = 1_000  // live workers of one application
	mostLive   = 10_000 // of all
	mostStored = 20_000 // with those that expired within about an hour, whose heartbeats bring them back
)

// checkRoom refuses one worker too many. Registering again what is alive needs no room.
func (r *Registry) checkRoom(ctx context.Context, w row.Worker, live []row.Worker) error {
	ofApp := 0
	for _, other := range live {
		if same(w, other) {
			return nil
		}
		if other.App == w.App {
			ofApp++
		}
	}
	const wait = "remove those that are not needed, or let them expire"
	switch {
	case ofApp >= mostOfApp:
		return tooMany("body.app", fmt.Sprintf("the application has %d live workers, and may have no more; %s", ofApp, wait))
	case len(live) >= mostLive:
		return tooMany("body", fmt.Sprintf("there are %d live workers, and there may be no more; %s", len(live), wait))
	}
	stored, err := r.Store.CountWorkers(ctx)
	if err == nil && stored >= mostStored {
		err = tooMany("body", fmt.Sprintf("%d workers were registered within the last hour; use longer ttls, remove those that end, "+
			"or wait until expired ones are forgotten", stored))
	}
	return err
}

func same(a, b row.Worker) bool { return a.App == b.App && a.Address == b.Address }

func tooMany(where, why string) *wire.Problem {
	p := problem(http.StatusConflict, wire.CodeTooManyWorkers, why)
	p.Errors = []wire.Detail{{Location: where, Message: why}}
	return p
}

package httpapi

import (
	"net/http"
	"slices"

	"github.com/delaytask/delaytask/internal/wire"
)

// Ancestors serves the routes of the ancestors, whose clients read one shape of answer alone.
type Ancestors interface {
	http.Handler
	// Refuse says in that shape that a request was not let through.
	Refuse(w http.ResponseWriter, status int, detail string)
}

// ancestral are their routes.
var ancestral = []string{"/compat/topics", "/o/add", "/o/get", "/o/complete"}

// refuse answers a request that never reached its handler, or left it by a panic, as its client understands it.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, p *wire.Problem) {
	if a.compat != nil && slices.Contains(ancestral, r.URL.Path) {
		a.compat.Refuse(w, p.Status, p.Detail)
		return
	}
	refused(w, p)
}

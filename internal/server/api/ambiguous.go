package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/delaytask/delaytask/internal/wire"
)

// unambiguous refuses requests of which a part would be ignored in silence: a query that cannot be read, a parameter
// that comes twice, and a body where none is taken.
func unambiguous(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if p := ambiguity(r, ctx.Operation()); p != nil {
		refused(w, p)
		return
	}
	next(ctx)
}

func ambiguity(r *http.Request, op *huma.Operation) *wire.Problem {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problemOf(http.StatusBadRequest, wire.CodeInvalidParameter, "the query cannot be read: write special characters as %XX")
	}
	for name, values := range query {
		if len(values) > 1 && !repeatable(op, name) {
			return problemOf(http.StatusBadRequest, wire.CodeInvalidParameter,
				fmt.Sprintf("the parameter %.40q comes more than once", name))
		}
	}
	if len(r.Header.Values("Idempotency-Key")) > 1 {
		return problemOf(http.StatusBadRequest, wire.CodeInvalidHeader, "there is more than one Idempotency-Key")
	}
	if op.RequestBody == nil && r.ContentLength > 0 {
		// Some clients send an empty object with every POST.
		if body, err := io.ReadAll(r.Body); err != nil || string(bytes.TrimSpace(body)) != "{}" {
			return problemOf(http.StatusBadRequest, wire.CodeInvalidJSON, "this call takes no body; its parameters go into the query")
		}
	}
	return nil
}

func repeatable(op *huma.Operation, name string) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool {
		return p.In == "query" && p.Name == name && p.Schema != nil && p.Schema.Type == huma.TypeArray
	})
}

package httpapi

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const requestWait = 15 * time.Second

// timed ends the context of an operation that takes longer than Config.RequestWait.
func (a *API) timed(ctx huma.Context, next func(huma.Context)) {
	limited, cancel := context.WithTimeout(ctx.Context(), a.requestWait)
	defer cancel()
	next(huma.WithContext(ctx, limited))
}

package httpapi

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// requestWait is how long a request waits for the database, so that its caller hears how it stands while it still listens: most
// clients give up after 30 s. Pops have a wait of their own.
const requestWait = 15 * time.Second

// timed ends the context of an operation that takes longer than requestWait.
func timed(ctx huma.Context, next func(huma.Context)) {
	limited, cancel := context.WithTimeout(ctx.Context(), requestWait)
	defer cancel()
	next(huma.WithContext(ctx, limited))
}

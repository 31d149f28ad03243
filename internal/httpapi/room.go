package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/delaytask/delaytask/internal/inbound"
)

const (
	// smallBody is what every request may bring at any time; only what is larger waits for room.
	smallBody = 1 << 20
	// roomBytes bounds the bodies of large requests that are in memory at a time.
	roomBytes = 256 << 20
	// roomWait is how long a large request waits for room.
	roomWait = 10 * time.Second
)

// roomed lets large requests in as far as there is room for their bodies. The room is taken when the first byte beyond a small body is
// read, for the whole of it, and given back when the request is answered.
func (a *API) roomed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &roomedBody{ReadCloser: r.Body, ctx: r.Context(), room: a.room, wait: a.roomWait, weight: mostBatchBytes}
		if r.ContentLength >= 0 { // what is longer than any request may be is refused as it is read
			body.weight = min(r.ContentLength, mostBatchBytes)
		}
		defer body.leave()
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// roomedBody is a body that waits for room once it turns out to be large.
type roomedBody struct {
	io.ReadCloser
	ctx    context.Context
	room   *semaphore.Weighted
	wait   time.Duration
	weight int64
	read   int64
	inside bool
}

func (b *roomedBody) Read(p []byte) (int, error) {
	if !b.inside && b.weight > smallBody {
		if b.read >= smallBody {
			if err := b.enter(); err != nil {
				return 0, err
			}
		} else {
			p = p[:min(int64(len(p)), smallBody-b.read)]
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

func (b *roomedBody) enter() error {
	ctx, cancel := context.WithTimeout(b.ctx, b.wait)
	defer cancel()
	if err := b.room.Acquire(ctx, b.weight); err != nil {
		return inbound.NoRoom
	}
	b.inside = true
	return nil
}

func (b *roomedBody) leave() {
	if b.inside {
		b.room.Release(b.weight)
	}
}

package api

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/semaphore"

	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	// smallBody is the size in bytes up to which a body never waits for room.
	smallBody = 1 << 20
	// roomBytes bounds the bodies of large requests that are in memory at a time, and as much the pages.
	roomBytes = 256 << 20
	// bareBytes is the part of the room of pages that pages without bodies have.
	bareBytes = roomBytes / 4
	// roomWait is how long a large request, and one for a page, waits for room.
	roomWait = 10 * time.Second
)

// roomed admits large requests while there is room for their bodies. A body takes room for its whole size when the
// first byte beyond a small body is read, and returns it when the request is answered.
func (a *API) roomed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &roomedBody{ReadCloser: r.Body, ctx: r.Context(), room: a.room, wait: a.roomWait,
			weight: mostBatchBytes}
		if r.ContentLength >= 0 { // a body beyond every limit is refused when it is read
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
		return reqbody.NoRoom
	}
	b.inside = true
	return nil
}

func (b *roomedBody) leave() {
	if b.inside {
		b.room.Release(b.weight)
	}
}

// pageBytes bounds the tasks of a page, in bytes. One task alone may take more.
const pageBytes = 16 << 20

// pageRoom is the share of one request in the memory for pages. It covers the largest page during the read, then the
// page that was found until the client has read it.
type pageRoom struct {
	room *semaphore.Weighted
	held int64
}

type pageRoomKey struct{}

// paged returns the request's share when it is answered.
func (a *API) paged(ctx huma.Context, next func(huma.Context)) {
	room := &pageRoom{room: a.bare}
	defer func() { room.room.Release(room.held) }()
	next(huma.WithValue(ctx, pageRoomKey{}, room))
}

func pageRoomOf(ctx context.Context) *pageRoom { return ctx.Value(pageRoomKey{}).(*pageRoom) }

// enter waits for room.
func (r *pageRoom) enter(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := r.room.Acquire(ctx, pageBytes); err != nil {
		return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeOverloaded, reqbody.NoRoom.Error())
	}
	r.held = pageBytes
	return nil
}

// keep returns what the page does not need.
func (r *pageRoom) keep(needed int64) {
	if spare := r.held - needed; spare > 0 {
		r.room.Release(spare)
		r.held = needed
	}
}

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/semaphore"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/inbound"
	"github.com/delaytask/delaytask/internal/wire"
)

// pageBytes is what the tasks of a page take at most. One task alone may take more.
const pageBytes = 16 << 20

// pageRoom is the share that one request has of the memory for pages. It has room for the largest page while it reads, then for
// the page that was found until the client has taken it.
type pageRoom struct {
	room *semaphore.Weighted
	held int64
}

type pageRoomKey struct{}

// paged gives the request's share back when it is answered.
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
		return problemOf(http.StatusServiceUnavailable, wire.CodeOverloaded, inbound.NoRoom.Error())
	}
	r.held = pageBytes
	return nil
}

// keep gives back what the page does not need.
func (r *pageRoom) keep(tasks []delaytask.Task) {
	var needed int64
	for i := range tasks {
		needed += int64(len(tasks[i].Body) + len(tasks[i].ErrorStack))
	}
	if spare := r.held - needed; spare > 0 {
		r.room.Release(spare)
		r.held = needed
	}
}

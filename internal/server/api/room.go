package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/wire"
)

// bareBytes bounds the pages without bodies that are in memory at a time.
const bareBytes = 32 << 20

// taskRoom is what a task takes in memory beside its body, in bytes.
const taskRoom = 2 << 10

// weightOf says how many bytes are held because of so many bytes of a body: those that are read, what is made of them,
// and the row. A batch is decoded task by task, and each task takes memory of its own, however short it is.
func weightOf(batch bool) func(int64) int64 {
	if !batch {
		return func(n int64) int64 { return 4 * n }
	}
	const shortest = int64(len(`{"tag":"t"}` + "\n"))
	return func(n int64) int64 { return 3*n + min(n/shortest, mostBatch)*taskRoom }
}

// pageBytes bounds the tasks of a page, in bytes. One task alone may take more.
const pageBytes = 16 << 20

// pageRoom is the place of one page in memory. It covers the largest page during the read, then the page that was found
// until the client has read it.
type pageRoom struct {
	a     *API
	w     http.ResponseWriter
	r     *http.Request
	place *reqbody.Place
}

type pageRoomKey struct{}

// paged returns the page's place when the request is answered.
func (a *API) paged(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	room := &pageRoom{a: a, w: w, r: r}
	defer room.leave()
	next(huma.WithValue(ctx, pageRoomKey{}, room))
}

func pageRoomOf(ctx context.Context) *pageRoom { return ctx.Value(pageRoomKey{}).(*pageRoom) }

// enter waits for room.
func (p *pageRoom) enter(ctx context.Context, bodies bool) error {
	room := p.a.bare
	if bodies {
		room = p.a.rooms.Answers
	}
	return p.enterRoom(ctx, room, pageBytes)
}

func (p *pageRoom) enterRoom(ctx context.Context, room *reqbody.Room, bytes int64) (err error) {
	p.place, err = room.Enter(ctx, reqbody.CallerOf(p.r), bytes, p.a.rooms.Wait, nil)
	if err != nil {
		return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeOverloaded, reqbody.NoRoom.Error())
	}
	return nil
}

// grow takes room for one more task that is handed out, with its answer.
func (p *pageRoom) grow(body int) bool { return p.place.Grow(2*int64(body) + taskRoom) }

// enterTask waits for room for a task that is shown, with its answer.
func (p *pageRoom) enterTask(ctx context.Context) error {
	return p.enterRoom(ctx, p.a.rooms.Answers, 2*int64(p.a.bodyLimit)+taskRoom)
}

// keep returns what the page does not need. From now on it waits for its client.
func (p *pageRoom) keep(needed int64) {
	p.place.Keep(needed)
	p.place.Unread(p.w)
}

func (p *pageRoom) leave() {
	if p.place != nil {
		p.place.Leave()
		p.place = nil
	}
}

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	// mostReads is how many pages are read at once, each over one connection.
	mostReads = 2
	// refreshEvery is how often a page refreshes itself.
	refreshEvery = 5 * time.Second
	// keptFor is how long viewers of the same page share one reading.
	keptFor = refreshEvery - time.Second
	// refreshRate is how many statements are sent for refreshes in a second.
	refreshRate  = 5
	refreshBurst = 25
)

// errLater is returned for a refresh that has to wait for its turn. The page stays as it is.
var errLater = errors.New("refresh later")

// reads bounds what all viewers of a dashboard read together.
type reads struct {
	room  *semaphore.Weighted
	turns *rate.Limiter

	mu   sync.Mutex
	kept map[string]*reading
}

// reading is what was read for a page, for all who may see the same.
type reading struct {
	at    time.Time
	now   time.Time     // by the database's clock; all who share it show it as of then
	done  chan struct{} // closed when the rest is set
	shown any
	err   error
}

func newReads() *reads {
	return &reads{
		room: semaphore.NewWeighted(mostReads), turns: rate.NewLimiter(refreshRate, refreshBurst),
		kept: map[string]*reading{},
	}
}

// do reads a page. A refresh may get what another viewer's refresh has read, or errLater.
func (r *reads) do(v *view, p page, again bool) (any, error) {
	if !again {
		return r.now(v, p)
	}
	key := fmt.Sprintf("%s\n%s\n%q\n%q", v.Path, v.r.URL.RawQuery, v.Caller.Tags(), v.Caller.Verbs())
	r.mu.Lock()
	last := r.kept[key]
	if last == nil || time.Since(last.at) > keptFor {
		if !r.turns.AllowN(time.Now(), max(p.cost, 2)) {
			r.mu.Unlock()
			return nil, errLater
		}
		last = &reading{at: time.Now(), now: v.Now, done: make(chan struct{})}
		makeRoom(r.kept, func(old *reading) bool { return time.Since(old.at) > keptFor })
		r.kept[key] = last
		r.mu.Unlock()
		shared := *v
		shared.r = v.r.WithContext(context.WithoutCancel(v.r.Context())) // others wait for it too
		func() {
			defer close(last.done)
			last.err = errSlow // unless it ends
			last.shown, last.err = r.now(&shared, p)
		}()
		return last.shown, last.err
	}
	r.mu.Unlock()
	select {
	case <-last.done:
		v.Now = last.now
		return last.shown, last.err
	case <-v.r.Context().Done():
		return nil, context.Cause(v.r.Context())
	}
}

// now reads a page once there is room.
func (r *reads) now(v *view, p page) (any, error) {
	ctx, cancel := within(v.r.Context())
	defer cancel()
	conns := max(p.conns, 1)
	if err := r.room.Acquire(ctx, conns); err != nil {
		return nil, context.Cause(ctx)
	}
	defer r.room.Release(conns)
	read := *v
	read.r = v.r.WithContext(ctx)
	shown, err := p.show(&read)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && !isPart(v.r) {
		v.server.learn(ctx, v.store)
	}
	return shown, err
}

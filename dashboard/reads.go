package dashboard

import (
	"context"
	"errors"
	"maps"
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
	// readTime bounds what a page reads.
	readTime = 2 * time.Second
	// mostKept bounds how many parts, and how many readings of pages, are remembered.
	mostKept = 200
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

// within bounds a read.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, readTime, errSlow)
}

// makeRoom forgets what is over where there is too much, and everything where that is not enough.
func makeRoom[T any](all map[string]T, over func(T) bool) {
	if len(all) >= mostKept {
		maps.DeleteFunc(all, func(_ string, one T) bool { return over(one) })
	}
	if len(all) >= mostKept {
		clear(all)
	}
}

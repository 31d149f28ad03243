package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// unansweredAfter is how long a write has no answer before the server is asked why.
	unansweredAfter = 250 * time.Millisecond
	// The pauses between two looks grow from the first to the last by half while no write is cut off. On a slow disk
	// the writes wait for no lock, and the server has enough to do.
	firstLookPause = 100 * time.Millisecond
	lastLookPause  = time.Second
	// restOfLooks is how many times longer than a look the pause after it is at least: a look costs the server a lot.
	restOfLooks = 4
	// lookTimeout bounds a look. By then the server has ended most waits by itself.
	lookTimeout = time.Second
)

// unanswered watches the writes that have no answer. It cuts off waits for locks (cutoff.go), and gives up connections
// that lead nowhere (silence.go).
type unanswered struct {
	ask     func(context.Context, func(context.Context, *sql.Conn) error) error // on a connection of its own
	version func(context.Context, *sql.Conn) (version, error)
	probe   func(ctx context.Context, before time.Time) error // asks on an idle connection from before that time
	servers *servers
	tempo   *tempo
	closed  <-chan struct{} // with the store

	mu       sync.Mutex
	writes   map[*write]bool // without an answer after unansweredAfter
	watching bool
	refused  time.Time // when the server has refused last to tell who waits
}

func nameSession(ctx context.Context, conn *sql.Conn, d dialect) (s session, err error) {
	query := clause{sql: "SELECT CONNECTION_ID(), " + d.server}
	err = scan(ctx, conn, query, func() {}, &s.id, &s.server)
	return s, err
}

func newUnanswered(s *servers, t *tempo) *unanswered {
	return &unanswered{servers: s, tempo: t, writes: map[*write]bool{}}
}

type askKey struct{} // of a context of ask

// begin notes that a write begins on a connection, and end that it has ended. The context is for its statements.
func (u *unanswered) begin(ctx context.Context, on session) (context.Context, *write) {
	if u == nil || ctx.Value(askKey{}) != nil {
		return ctx, nil
	}
	w := &write{session: on}
	ctx, w.giveUp = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(u.tempo.slow(unansweredAfter), func() { u.watch(w) })
	return context.WithValue(ctx, writeKey{}, w), w
}

// end reports whether the write was cut off. The interruption may have come too late, and meet the next statement.
func (u *unanswered) end(w *write) (cut bool) {
	if w == nil {
		return false
	}
	w.mu.Lock()
	w.ended, cut = true, w.cut
	w.mu.Unlock()
	if !w.timer.Stop() {
		u.forget(w)
	}
	w.giveUp(nil)
	return cut
}

func (u *unanswered) forget(w *write) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.writes, w)
}

// watch adds a write to those that are looked at.
func (u *unanswered) watch(w *write) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if u.servers.leadsNowhere(w.opened) {
		w.giveUp(errSilent)
		return
	}
	u.writes[w] = true
	if !u.watching {
		u.watching = true
		go u.attend()
	}
}

// attend looks at the writes while there are some without an answer.
func (u *unanswered) attend() {
	for pause := firstLookPause; !u.isOver(); pause = min(pause+pause/2, lastLookPause) {
		began := time.Now()
		if u.lookAt(u.all()) {
			pause = firstLookPause
		}
		if !u.sleep(max(pause, restOfLooks*time.Since(began))) {
			return
		}
	}
}

// sleep reports whether the store is still open after that time.
func (u *unanswered) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-u.closed:
		return false
	}
}

// isOver ends the watch when no write is without an answer.
func (u *unanswered) isOver() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.watching = len(u.writes) > 0
	return !u.watching
}

func (u *unanswered) all() []*write {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.writes))
}

// lookAt reports whether it has cut off one of the writes.
func (u *unanswered) lookAt(writes []*write) (cut bool) {
	looked := time.Now()
	err := u.askIn(context.Background(), func(ctx context.Context, conn *sql.Conn) (err error) {
		cut, err = u.cut(ctx, conn, writes)
		return err
	})
	if !cut {
		u.findSilent(looked, err)
	}
	return cut
}

func (u *unanswered) askIn(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, askKey{}, true), lookTimeout)
	defer cancel()
	return u.ask(ctx, f)
}

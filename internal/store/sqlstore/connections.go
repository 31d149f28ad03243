package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// spareFor is for how long a connection stays open that no write needs.
	spareFor = 10 * time.Second
	// fullFor is for how long none is opened after the server has had none left.
	fullFor = time.Second
)

var (
	errClosed = errors.New("the store is closed")
	errSetUp  = errors.New("set up a connection") // what was sent on it has failed, or had no answer
)

// connections are what writes are sent on. They are set up once and never go back to the pool: a caller's statements
// must not run with their session variables, nor a write behind a caller's locks. A write takes the one that was used
// last, so that what a busy moment has opened is closed after it.
//
// Lanes bound how many writes of a kind are sent at once, and this type how many are sent in all. Each of the hosts can
// have one at any time, so that a write which waits for a lock holds up none that waits for no lock.
//
// A SQLite file has none of its own: a write borrows one of the pool.
type connections struct {
	*waitlist // nil: a file, whose connections cost little

	db         *pool
	dialect    dialect
	life       time.Duration // of a connection
	servers    *servers      // behind the address; nil: the pool's next connection will do
	unanswered *unanswered   // watches the writes; nil: nothing does

	closed  chan struct{}
	drained chan struct{} // closed when none is in use after that

	mu      sync.Mutex
	most    int       // at once
	inUse   [uses]int // by kinds of writes
	tempos  [uses]tempo
	waiting []*waiter     // in the order in which they came
	idle    []reservation // the one that was used last at the end
	full    time.Time     // until then the server has none left
}

// reservation is an open connection.
type reservation struct {
	conn  *sql.Conn // nil: it is not open
	until time.Time // when it is renewed
	used  time.Time // last
	moves int       // of the address, when it was opened
	session
}

// waiter is a write that waits for a connection.
type waiter struct {
	kind use
	turn chan struct{} // closed when it has come
}

func newConnections(db *pool, d dialect, most int) *connections {
	c := &connections{
		db: db, dialect: d, life: maxLifetime, most: most,
		closed: make(chan struct{}), drained: make(chan struct{}),
	}
	if d.reserves {
		c.waitlist = &waitlist{tempo: &tempo{fresh: time.Now()}}
	}
	return c
}

// bound changes how many are in use at most. More than that are not taken from their writes.
func (c *connections) bound(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
	c.admit()
}

// take returns a connection for a write of that kind. An error says that nothing was sent.
func (c *connections) take(ctx context.Context, u use) (reservation, error) {
	for {
		if err := c.enter(ctx, u); err != nil {
			return reservation{}, err
		}
		r, err := c.ready(ctx, c.idleOne(ctx, u))
		if err == nil {
			return r, nil
		}
		others := isFull(err) && c.holdBack()
		c.give(u, reservation{})
		if !others {
			return reservation{}, err
		}
	}
}

// enter waits until a write of that kind may have a connection.
func (c *connections) enter(ctx context.Context, u use) error {
	w := &waiter{u, make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, w)
	c.admit()
	c.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-c.closed:
		return c.withdraw(w, errClosed)
	case <-ctx.Done():
		return c.withdraw(w, fmt.Errorf("wait for a connection: %w", ctx.Err()))
	}
}

// withdraw ends a wait with its cause, unless the turn has come meanwhile.
func (c *connections) withdraw(w *waiter, cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return nil
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return cause
}

// admit lets those go whose turn has come.
func (c *connections) admit() {
	c.waiting = slices.DeleteFunc(c.waiting, func(w *waiter) bool {
		if !c.mayTake(w.kind) {
			return false
		}
		c.inUse[w.kind]++
		close(w.turn)
		return true
	})
}

// mayTake reports whether a write of that kind may have a connection. A place is kept for each host that has none.
func (c *connections) mayTake(u use) bool {
	var has [uses]int
	for other, n := range c.inUse {
		has[hostOf(use(other), c.most)] += n
	}
	host, total, kept := hostOf(u, c.most), sum(c.inUse[:]), 0
	for other := range uses {
		if other != host && hostOf(other, c.most) == other && has[other] == 0 {
			kept++
		}
	}
	switch {
	case c.isClosed():
		return false
	case !c.dialect.reserves: // the pool counts
		return true
	case batched[u] && c.inUse[u] >= c.tempos[u].atOnce(atOnce[u]):
		return false
	case time.Now().Before(c.full):
		return total == 0 || len(c.idle) > 0
	default:
		return has[host] == 0 || total+kept < c.most
	}
}

// idleOne returns an idle connection, or after a wait for one none: a new one is to be opened.
func (c *connections) idleOne(ctx context.Context, u use) (r reservation) {
	// Where all statements are slow, no lock is why a write has no answer.
	calm := u == chores || (u == lockChecks || u == apart) && c.waitlist != nil && c.tempo.areSlow()
	c.until(ctx, calm, func() bool {
		r = c.lastUsed(ctx)
		return r.conn != nil || ctx.Value(newKey{}) != nil || c.isAlone()
	})
	return r
}

// isAlone reports whether one write has a place.
func (c *connections) isAlone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sum(c.inUse[:]) == 1
}

// note takes how long a write of that kind took.
func (c *connections) note(u use, took time.Duration) {
	if c.waitlist != nil {
		c.tempo.note(took)
		c.tempos[u].note(took)
	}
}

type newKey struct{} // of the context of a write that wants a new connection

// lastUsed takes the idle connection that was used last, if there is one and the write may have it.
func (c *connections) lastUsed(ctx context.Context) (r reservation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.idle) - 1; last >= 0 && ctx.Value(newKey{}) == nil {
		r, c.idle = c.idle[last], c.idle[:last]
	}
	return r
}

// holdBack notes that the server has no connection left. It reports whether other writes use some: one of these will
// do.
func (c *connections) holdBack() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sum(c.inUse[:]) == 1 {
		return false
	}
	c.full = time.Now().Add(fullFor)
	return true
}

// give takes back the place of a write and its connection, unless that was discarded.
func (c *connections) give(u use, r reservation) {
	if r.conn != nil && !c.dialect.reserves {
		_ = r.conn.Close() // only gives it back
		r.conn = nil
	}
	for _, r := range c.put(u, r) {
		discard(r.conn)
	}
	c.freed()
}

// put returns the connections that are not needed any more.
func (c *connections) put(u use, r reservation) (spare []reservation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if r.used = now; r.conn != nil {
		c.idle = append(c.idle, r)
	}
	c.inUse[u]--
	c.drain()
	for len(c.idle) > 0 && (c.isClosed() || now.Sub(c.idle[0].used) >= spareFor) {
		spare, c.idle = append(spare, c.idle[0]), c.idle[1:]
	}
	c.admit()
	return spare
}

// ready returns the reservation when its connection is alive and not to be renewed, otherwise one of a new connection.
// The pool checks a connection when it hands one out, which these miss. A statement on one that the
// server has closed would be of unknown outcome. One that leads where the address has led before would write what no
// read finds.
func (c *connections) ready(ctx context.Context, r reservation) (reservation, error) {
	moves := 0
	if c.servers != nil {
		moves = c.servers.moves()
	}
	if r.conn != nil {
		switch alive := isAlive(ctx, r.conn) && !c.servers.leadsNowhere(r.opened); {
		case !alive || r.moves == moves && !time.Now().Before(r.until):
			discard(r.conn)
		case r.moves != moves:
			c.servers.part(ctx, r.conn)
		default:
			return r, nil
		}
	}
	open := c.db.Conn
	if c.servers != nil {
		open = c.servers.connect
	}
	conn, err := open(ctx)
	if err != nil {
		return reservation{}, err
	}
	for _, setting := range c.dialect.session {
		if _, err := conn.ExecContext(ctx, setting); err != nil {
			discard(conn)
			return reservation{}, fmt.Errorf("%w: %w", errSetUp, err)
		}
	}
	var named session
	if c.unanswered != nil {
		if named, err = nameSession(ctx, conn, c.dialect); err != nil {
			discard(conn)
			return reservation{}, fmt.Errorf("%w: %w", errSetUp, err)
		}
	}
	life := c.life - rand.N(c.life/10+1) // what was opened together is not renewed together
	named.opened = time.Now()
	return reservation{conn: conn, until: named.opened.Add(life), moves: moves, session: named}, nil
}

// isAlive reports whether the server has not closed the connection.
func isAlive(ctx context.Context, conn *sql.Conn) bool {
	return conn.Raw(func(c any) error {
		if r, ok := c.(driver.SessionResetter); ok {
			return r.ResetSession(ctx)
		}
		return nil
	}) == nil
}

// release gives back what a write has used. The connection is discarded where it may not be used again after err, or
// after a write that was cut off.
func (c *connections) release(u use, r reservation, err error, cut bool) {
	if c.dialect.reserves && (cut && !isLocked(err) || !reusable(err)) {
		discard(r.conn)
		r.conn = nil
	}
	c.give(u, r)
}

// reusable reports whether a connection can be used after err: the server has answered, with nothing that its session
// repeats.
func reusable(err error) bool {
	if err == nil {
		return true
	}
	_, answered := errors.AsType[*mysql.MySQLError](err)
	return answered && !sessionKeeps(err)
}

// probe asks on an idle connection from before that time, if there is one.
func (c *connections) probe(ctx context.Context, before time.Time) error {
	c.mu.Lock()
	i := slices.IndexFunc(c.idle, func(r reservation) bool { return r.opened.Before(before) })
	if i < 0 {
		c.mu.Unlock()
		return nil
	}
	r := c.idle[i]
	c.idle = slices.Delete(c.idle, i, i+1)
	c.inUse[lockChecks]++
	c.mu.Unlock()
	err := echo(ctx, r.conn)
	c.release(lockChecks, r, err, false)
	return err
}

func (c *connections) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// drain tells close when no connection is in use any more.
func (c *connections) drain() {
	if c.isClosed() && sum(c.inUse[:]) == 0 {
		close(c.drained)
	}
}

// close discards the connections. It waits for those in use until ctx ends: each is discarded when its write is done.
func (c *connections) close(ctx context.Context) error {
	c.mu.Lock()
	idle := c.idle
	if c.idle = nil; !c.isClosed() {
		close(c.closed)
		c.drain()
	}
	c.mu.Unlock()
	for _, r := range idle {
		discard(r.conn)
	}
	select {
	case <-c.drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the store: %w", ctx.Err())
	}
}

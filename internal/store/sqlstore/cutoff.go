package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	// cutAfter is how long a write has no answer before the server is asked whether it waits for a lock.
	cutAfter = 250 * time.Millisecond
	// The pauses between two looks grow from the first to the last by half while no write is cut off. On a slow disk
	// the writes wait for no lock, and the server has enough to do.
	firstCutPause = 100 * time.Millisecond
	lastCutPause  = time.Second
	// cutTimeout bounds a look. By then the server has ended most waits by itself.
	cutTimeout = time.Second
	// noCutFor is for how long no look follows a refused one.
	noCutFor = time.Minute
)

// cutoff ends waits for locks sooner than the server, which lets a write wait for one to two seconds, with all rows
// of its statement. A wait is cut off when it is for a transaction that runs no statement: such a one may stay open for
// long. What the server is just doing ends soon, as a slow commit does.
//
// To see who waits for whom takes PROCESS on MariaDB, and SELECT on tables of performance_schema on MySQL. Without it,
// and in clusters, where a statement may be interrupted while it commits, the server ends the waits.
type cutoff struct {
	db      *sqlx.DB
	version func(context.Context, *sql.Conn) (version, error)

	mu       sync.Mutex
	waits    map[*wait]bool // of writes without an answer after cutAfter
	watching bool
	refused  time.Time // when a look was refused last
}

// session names a connection of a server.
type session struct {
	id     string
	server string // as readings name it
}

func nameSession(ctx context.Context, conn *sql.Conn, d dialect) (s session, err error) {
	query := clause{sql: "SELECT CONNECTION_ID(), " + d.server}
	err = scan(ctx, conn, query, func() {}, &s.id, &s.server)
	return s, err
}

// wait is a write on a connection.
type wait struct {
	session
	timer *time.Timer

	mu    sync.Mutex // held while the write is being cut off; the mutex of the cutoff is taken before it
	ended bool
	cut   bool
}

func newCutoff(db *sqlx.DB, version func(context.Context, *sql.Conn) (version, error)) *cutoff {
	return &cutoff{db: db, version: version, waits: map[*wait]bool{}}
}

type waitKey struct{}

// begin notes that a write begins on a connection, and end that it has ended. The context tells its statements whether
// they were cut off.
func (c *cutoff) begin(ctx context.Context, on session) (context.Context, *wait) {
	if c == nil || on.id == "" {
		return ctx, nil
	}
	w := &wait{session: on}
	w.timer = time.AfterFunc(cutAfter, func() { c.watch(w) })
	return context.WithValue(ctx, waitKey{}, w), w
}

// end reports whether the write was cut off. The interruption may have come too late, and meet the next statement.
func (c *cutoff) end(w *wait) (cut bool) {
	if w == nil {
		return false
	}
	w.mu.Lock()
	w.ended, cut = true, w.cut
	w.mu.Unlock()
	if !w.timer.Stop() {
		c.forget(w)
	}
	return cut
}

func (c *cutoff) forget(w *wait) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, w)
}

// watch adds a write to those that are looked at.
func (c *cutoff) watch(w *wait) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || time.Since(c.refused) < noCutFor {
		return
	}
	c.waits[w] = true
	if !c.watching {
		c.watching = true
		go c.look()
	}
}

// look looks for writes that wait while there are some without an answer.
func (c *cutoff) look() {
	for pause := firstCutPause; ; pause = min(pause+pause/2, lastCutPause) {
		waits := c.open()
		if len(waits) == 0 {
			return
		}
		switch cut, err := c.cut(waits); {
		case errors.Is(err, errCluster) || isOf(err, row.ClassOperator):
			c.refuse()
		case cut:
			pause = firstCutPause
		}
		time.Sleep(pause)
	}
}

// open returns the writes to look at. Without any it ends the watch.
func (c *cutoff) open() []*wait {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = len(c.waits) > 0
	return slices.Collect(maps.Keys(c.waits))
}

func (c *cutoff) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = time.Now()
	clear(c.waits)
}

// cut cuts off each write that waits for a transaction which runs no statement.
func (c *cutoff) cut(waits []*wait) (any bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), cutTimeout)
	defer cancel()
	err = onPool(ctx, c.db, func(conn *sql.Conn) error {
		v, err := c.version(ctx, conn)
		if err != nil {
			return err
		}
		waiting, err := firsts[string](ctx, conn, waitingForIdle(v, waits))
		if err != nil || len(waiting) == 0 {
			return err
		}
		server, err := identify(ctx, conn)
		switch {
		case err != nil:
			return err
		case server.name != server.server:
			return errCluster
		}
		for _, w := range waits {
			if w.server == server.server && slices.Contains(waiting, w.id) {
				any = c.interrupt(ctx, conn, w) || any
			}
		}
		return nil
	})
	return any, err
}

var errCluster = errors.New("a member of a cluster may interrupt a statement while it commits")

// waitingForIdle selects the connections that wait for a lock of a transaction which runs no statement. The thread
// that MySQL calls the waiting one may be another, which has moved the lock with its page. Only the one that has locked
// the table is the transaction's own. The tables are read in this order: to begin with data_locks would copy all locks.
func waitingForIdle(v version, waits []*wait) clause {
	ids := make([]string, len(waits))
	for i, w := range waits {
		ids[i] = w.id
	}
	among := " IN (" + strings.Join(ids, ", ") + ")"
	if v.name == "MariaDB" {
		return clause{sql: "SELECT r.trx_mysql_thread_id FROM information_schema.INNODB_LOCK_WAITS AS w" +
			" JOIN information_schema.INNODB_TRX AS r ON r.trx_id = w.requesting_trx_id" +
			" JOIN information_schema.INNODB_TRX AS b ON b.trx_id = w.blocking_trx_id" +
			" JOIN information_schema.PROCESSLIST AS p ON p.id = b.trx_mysql_thread_id" +
			" WHERE p.command = 'Sleep' AND r.trx_mysql_thread_id" + among}
	}
	return clause{sql: "SELECT STRAIGHT_JOIN r.processlist_id FROM performance_schema.data_lock_waits AS w" +
		" JOIN performance_schema.data_locks AS l" +
		" ON l.engine_transaction_id = w.requesting_engine_transaction_id AND l.lock_type = 'TABLE'" +
		" JOIN performance_schema.threads AS r ON r.thread_id = l.thread_id" +
		" JOIN performance_schema.threads AS b ON b.thread_id = w.blocking_thread_id" +
		" WHERE b.processlist_command = 'Sleep' AND r.processlist_id" + among}
}

// interrupt ends the statement that runs on the connection of a write, unless the write has ended. The connection has
// no other statement before that is done.
func (c *cutoff) interrupt(ctx context.Context, conn *sql.Conn, w *wait) bool {
	c.forget(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.cut = true
	_, _ = conn.ExecContext(ctx, fmt.Sprint("KILL QUERY ", w.id)) // it may have ended by itself
	return true
}

// interrupted returns the error of a statement, which was not applied where it was cut off. What is classified stays as
// it is.
func interrupted(ctx context.Context, err error) error {
	const number = 1317
	w, _ := ctx.Value(waitKey{}).(*wait)
	if e, ok := errors.AsType[*mysql.MySQLError](err); w == nil || !ok || e.Number != number {
		return err
	}
	if _, classified := errors.AsType[*row.Error](err); classified {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		return err
	}
	return &row.Error{Class: row.ClassLocked, Op: "wait for a lock", Err: err}
}

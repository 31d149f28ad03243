package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store"
)

var (
	errClosed = errors.New("the store is closed")
	errSetUp  = errors.New("set up a connection") // what was sent on it has failed, or had no answer
)

// lane holds connections that are reserved for one kind of write. They are set up once and never go back to the pool: a
// caller's statements must not run with the session variables of a lane, nor a lane's behind a caller's locks.
//
// A SQLite file has one writer at a time. There a lane borrows one connection at a time, and all lanes take turns, both
// in the order of statements. SQLite itself picks the next writer by chance. Appending rows in the order of their ids
// and due times costs half of what inserting them in between does.
type lane struct {
	db         *sqlx.DB
	dialect    dialect
	slots      chan reservation
	turn       chan struct{} // taken by the lane that writes, nil where all may
	life       time.Duration // of a connection
	servers    *servers      // behind the address; nil: the pool's next connection will do
	unanswered *unanswered   // watches the writes; nil: nothing does
	file       *sameFile     // nil for a server

	once   sync.Once
	closed chan struct{}
}

// reservation is a place for a connection of a lane.
type reservation struct {
	conn  *sql.Conn // nil: not open
	until time.Time // when it is renewed
	moves int       // of the address, when it was opened
	session
}

func newLane(db *sqlx.DB, d dialect, size int, turn chan struct{}) *lane {
	l := &lane{
		db: db, dialect: d, slots: make(chan reservation, size), turn: turn, life: maxLifetime,
		closed: make(chan struct{}),
	}
	for range size {
		l.slots <- reservation{}
	}
	return l
}

// do runs f on a connection of the lane, and classifies its error. What fails before f sends anything was not applied.
func (l *lane) do(ctx context.Context, op string, f func(context.Context, *sql.Conn) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	departure := store.DepartureOf(ctx)
	departure.Waits()
	var r reservation
	select {
	case <-l.closed:
		return notApplied(op, errClosed)
	case <-ctx.Done():
		return notApplied(op, fmt.Errorf("wait for a connection: %w", ctx.Err()))
	case r = <-l.slots:
	}
	if l.turn != nil {
		select {
		case l.turn <- struct{}{}:
			defer func() { <-l.turn }()
		case <-ctx.Done():
			l.slots <- r
			return notApplied(op, fmt.Errorf("wait for other writes: %w", ctx.Err()))
		}
	}
	r, err := l.ready(ctx, r)
	if err != nil {
		l.slots <- reservation{}
		return notSent(op, err)
	}
	if err := l.file.check(ctx, r.conn); err != nil {
		l.release(r, nil, false)
		return err
	}
	if err := departure.Sends(); err != nil {
		l.release(r, nil, false)
		return notApplied(op, err)
	}
	inside, begun := l.unanswered.begin(ctx, r.session)
	err = outcome(inside, f(inside, r.conn))
	l.release(r, err, l.unanswered.end(begun))
	if err == nil { // the file may have lost its name during the write
		if gone := l.file.check(ctx, nil); gone != nil {
			return afterWrite(op, gone)
		}
	}
	return classify(op, err)
}

// execute runs one statement on a connection of the lane, and returns how many rows it has changed.
func (l *lane) execute(ctx context.Context, op string, c clause) (n int, err error) {
	err = l.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		n, err = execute(ctx, conn, c)
		return err
	})
	return n, err
}

// write is execute for a statement that may change any number of rows.
func (l *lane) write(ctx context.Context, op string, c clause) error {
	_, err := l.execute(ctx, op, c)
	return err
}

// ready returns the reservation when its connection is alive and not to be renewed, otherwise one of a new connection.
// The pool checks a connection when it hands one out, which a reserved connection misses. A statement on one that the
// server has closed would be of unknown outcome. One that leads where the address has led before would write what no
// read finds.
func (l *lane) ready(ctx context.Context, r reservation) (reservation, error) {
	moves := 0
	if l.servers != nil {
		moves = l.servers.moves()
	}
	if r.conn != nil {
		switch alive := isAlive(ctx, r.conn) && !l.servers.leadsNowhere(r.opened); {
		case !alive || r.moves == moves && !time.Now().Before(r.until):
			discard(r.conn)
		case r.moves != moves:
			l.servers.part(ctx, r.conn)
		default:
			return r, nil
		}
	}
	open := l.db.Conn
	if l.servers != nil {
		open = l.servers.connect
	}
	conn, err := open(ctx)
	if err != nil {
		return reservation{}, err
	}
	for _, setting := range l.dialect.session {
		if _, err := conn.ExecContext(ctx, setting); err != nil {
			discard(conn)
			return reservation{}, fmt.Errorf("%w: %w", errSetUp, err)
		}
	}
	var named session
	if l.unanswered != nil {
		if named, err = nameSession(ctx, conn, l.dialect); err != nil {
			discard(conn)
			return reservation{}, fmt.Errorf("%w: %w", errSetUp, err)
		}
	}
	life := l.life - rand.N(l.life/10+1) // what was opened together is not renewed together
	now := time.Now()
	named.opened = now
	return reservation{conn, now.Add(life), moves, named}, nil
}

// idle takes a connection that is not in use and was opened before that time. The caller releases it.
func (l *lane) idle(before time.Time) (r reservation, is bool) {
	select {
	case r = <-l.slots:
	default:
		return r, false
	}
	if r.conn == nil || !r.opened.Before(before) {
		l.slots <- r
		return reservation{}, false
	}
	return r, true
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

func (l *lane) release(r reservation, err error, cut bool) {
	switch {
	case !l.dialect.reserves:
		_ = r.conn.Close() // only gives it back
		r = reservation{}
	case l.isClosed() || cut && !isLocked(err) || !reusable(err):
		discard(r.conn)
		r = reservation{}
	}
	l.slots <- r
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

func (l *lane) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

func (l *lane) close(ctx context.Context) error {
	var err error
	l.once.Do(func() {
		close(l.closed)
		for range cap(l.slots) {
			select {
			case r := <-l.slots:
				if r.conn != nil {
					discard(r.conn)
				}
			case <-ctx.Done():
				err = fmt.Errorf("close the store: %w", ctx.Err())
				return
			}
		}
	})
	return err
}

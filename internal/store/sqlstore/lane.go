package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

var errClosed = errors.New("the store is closed")

// lane holds connections that are reserved for one kind of write. They are set up once and never go back to the pool: a
// caller's statements must not run with the session variables of a lane, nor a lane's behind a caller's locks.
//
// A SQLite file has one writer at a time. There a lane borrows one connection at a time, and all lanes take turns, both
// in the order of statements. SQLite itself picks the next writer by chance. Appending rows in the order of their ids
// and due times costs half of what inserting them in between does.
type lane struct {
	db      *sqlx.DB
	dialect dialect
	slots   chan *sql.Conn // nil: reserved but not open
	turn    chan struct{}  // taken by the lane that writes, nil where all may

	once   sync.Once
	closed chan struct{}
}

func newLane(db *sqlx.DB, d dialect, size int, turn chan struct{}) *lane {
	l := &lane{db: db, dialect: d, slots: make(chan *sql.Conn, size), turn: turn, closed: make(chan struct{})}
	for range size {
		l.slots <- nil
	}
	return l
}

// do runs f on a connection of the lane, and classifies its error. What fails before f sends anything was not applied.
func (l *lane) do(ctx context.Context, op string, f func(context.Context, *sql.Conn) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	var conn *sql.Conn
	select {
	case <-l.closed:
		return notApplied(op, errClosed)
	case <-ctx.Done():
		return notApplied(op, fmt.Errorf("wait for a connection: %w", ctx.Err()))
	case conn = <-l.slots:
	}
	if l.turn != nil {
		select {
		case l.turn <- struct{}{}:
			defer func() { <-l.turn }()
		case <-ctx.Done():
			l.slots <- conn
			return notApplied(op, fmt.Errorf("wait for other writes: %w", ctx.Err()))
		}
	}
	conn, err := l.ready(ctx, conn)
	if err != nil {
		l.slots <- nil
		return notSent(op, err)
	}
	err = f(ctx, conn)
	l.release(conn, err)
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

// ready returns conn when it is alive, otherwise a new connection. The pool checks a connection when it hands one out,
// which a reserved connection misses. A statement on one that the server has closed would be of unknown outcome.
func (l *lane) ready(ctx context.Context, conn *sql.Conn) (*sql.Conn, error) {
	if conn != nil {
		err := conn.Raw(func(c any) error {
			if r, ok := c.(driver.SessionResetter); ok {
				return r.ResetSession(ctx)
			}
			return nil
		})
		if err == nil {
			return conn, nil
		}
		discard(conn)
	}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, setting := range l.dialect.session {
		if _, err := conn.ExecContext(ctx, setting); err != nil {
			discard(conn)
			return nil, fmt.Errorf("set up a connection: %w", err)
		}
	}
	return conn, nil
}

func (l *lane) release(conn *sql.Conn, err error) {
	switch {
	case !l.dialect.reserves:
		_ = conn.Close() // only gives it back
		conn = nil
	case l.isClosed() || !reusable(err):
		discard(conn)
		conn = nil
	}
	l.slots <- conn
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
			case conn := <-l.slots:
				if conn != nil {
					discard(conn)
				}
			case <-ctx.Done():
				err = fmt.Errorf("close the store: %w", ctx.Err())
				return
			}
		}
	})
	return err
}

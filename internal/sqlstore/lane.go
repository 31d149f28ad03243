package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
)

var errClosed = errors.New("the store is closed")

// lane holds connections that are reserved for one kind of write. They are set up once, and never go back to the pool:
// a caller's statements must not meet our session variables, nor ours a lock that they hold.
//
// A SQLite file has one writer at a time, so there a lane only borrows, one connection at a time, and all lanes take
// turns. Both are in the order in which statements come, while SQLite itself lets the next writer in by chance: rows in
// the order of their ids and due times are appended to the table and its indexes, which costs half of what squeezing
// them in does.
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

// do runs f on a connection of the lane. Its error has its class: what fails before f sends anything was not applied.
func (l *lane) do(ctx context.Context, op string, f func(context.Context, *sql.Conn) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	var conn *sql.Conn
	select {
	case <-l.closed:
		return &row.Error{Class: row.ClassNotApplied, Op: op, Err: errClosed}
	case <-ctx.Done():
		return &row.Error{Class: row.ClassNotApplied, Op: op, Err: fmt.Errorf("wait for a connection: %w", ctx.Err())}
	case conn = <-l.slots:
	}
	if l.turn != nil {
		select {
		case l.turn <- struct{}{}:
			defer func() { <-l.turn }()
		case <-ctx.Done():
			l.slots <- conn
			return &row.Error{Class: row.ClassNotApplied, Op: op, Err: fmt.Errorf("wait for other writes: %w", ctx.Err())}
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

// notSent classifies a failure to get a connection. It cannot be of unknown outcome.
func notSent(op string, err error) error {
	err = classify(op, err)
	if e, ok := errors.AsType[*row.Error](err); ok && e.Class == row.ClassUnknown {
		e.Class = row.ClassNotApplied
	}
	return err
}

// ready returns conn when it is alive, else a new connection. A pinned connection misses the check that the pool makes
// before it hands one out, and a statement on a connection that the server closed while it was idle would be of unknown
// outcome.
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

// reusable reports whether a connection can go on after err: only when the server answered, and nothing that its
// session keeps.
func reusable(err error) bool {
	if err == nil {
		return true
	}
	_, answered := errors.AsType[*mysql.MySQLError](err)
	return answered && !sessionKeeps(err)
}

// sessionKeeps reports whether the session would meet the fault again once its cause is mended.
func sessionKeeps(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(keptFaults, e.Number)
}

// onPool runs f on a connection of the pool, and discards one that keeps what f failed for.
func onPool(ctx context.Context, db *sqlx.DB, f func(*sql.Conn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	if err = f(conn); sessionKeeps(err) {
		discard(conn)
		return err
	}
	_ = conn.Close() // only gives it back
	return err
}

// discard closes the connection for good.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
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

// repeats is how often a write that may be repeated is tried: a reply is lost or a deadlock met rarely, and hardly ever
// twice in a row. What lasts longer is for the caller to wait for.
const repeats = 3

// repeat runs a write that changes nothing when it is run again, until its outcome is known. A row of somebody else
// that was written since the write looked for it is met the next time.
func repeat(ctx context.Context, write func() error) error {
	var err error
	for range repeats {
		if err = write(); err == nil || ctx.Err() != nil {
			return err
		}
		switch row.ClassOf(err) {
		case row.ClassUnknown, row.ClassNotApplied, row.ClassDuplicate:
		default:
			return err
		}
	}
	return err
}

// statementTimeout bounds every statement whose context brings no deadline.
const statementTimeout = 10 * time.Second

// withDeadline makes sure that no statement waits for ever.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, statementTimeout)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func execute(ctx context.Context, on execer, query string, args []any) (int, error) {
	result, err := on.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// classify gives every error of a database its class, by number and never by text, and says what was tried. It returns
// nil for nil; sql.ErrNoRows, which is an answer, and what has its class already come back as they are.
func classify(op string, err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, ok := errors.AsType[*row.Error](err); ok {
		return err
	}
	f := faultOf(err)
	return &row.Error{Class: f.class, Op: op, Hint: f.hint, Err: err}
}

// afterWrite marks an error of a read that followed a write on the same connection: the write was applied, so whatever
// the error says of the read, the outcome as a whole is not known.
func afterWrite(op string, err error) error {
	if err == nil {
		return nil
	}
	return &row.Error{Class: row.ClassUnknown, Op: op, Err: err}
}

package sqlstore

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store"
)

var _ store.Store = (*Store)(nil)

// New returns a store on db, which stays the caller's, for any concurrency.
func New(db *sqlx.DB, kind Kind) *Store { return NewFor(db, kind, len(turns)) }

// NewFor returns a store on db, which stays the caller's, for a process that runs concurrency tasks at once.
// Connections are reserved when they are first needed: all that help, or in a smaller pool as many as concurrency says.
func NewFor(db *sqlx.DB, kind Kind, concurrency int) *Store {
	d := dialectOf(kind)
	turn := make(chan struct{}, 1)
	pool := db.Stats().MaxOpenConnections
	var file *sameFile
	if !d.reserves {
		pool, file = 0, new(sameFile)
	}
	s := &Store{db: db, dialect: d, own: d.onOwnSession(), concurrency: concurrency, file: file}
	var watch *unanswered
	if d.reserves {
		s.servers = newServers(db)
		watch = newUnanswered(s.servers)
		watch.version, watch.probe = s.serverVersion, s.probe
		watch.ask = func(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
			return s.lanes[lockChecks].do(ctx, "ask why a write has no answer", f)
		}
	}
	s.lanes = share(reserved(pool, concurrency), func(size int) *lane {
		if !d.reserves {
			l := newLane(db, d, 1, turn)
			l.file = file
			return l
		}
		l := newLane(db, d, size, nil)
		l.servers, l.unanswered = s.servers, watch
		return l
	})
	if watch != nil {
		watch.closed = s.lanes[lockChecks].closed
	}
	return s
}

func dialectOf(kind Kind) dialect {
	switch kind {
	case SQLite:
		return sqliteDialect
	case MySQL:
		return mysqlDialect
	default:
		panic("sqlstore: no dialect for " + kind.String())
	}
}

package sqlstore

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store"
)

var _ store.Store = (*Store)(nil)

// New returns a store on db, which stays the caller's, for any concurrency.
func New(db *sqlx.DB, kind Kind) *Store { return NewFor(db, kind, inAll) }

// NewFor returns a store on db, which stays the caller's, for a process that runs concurrency tasks at once.
// Connections are opened when they are needed: as many as help, or in a smaller pool as many as concurrency says.
func NewFor(db *sqlx.DB, kind Kind, concurrency int) *Store {
	d := dialectOf(kind)
	p := &pool{DB: db}
	c := newConnections(p, d, mostOf(db.Stats().MaxOpenConnections, concurrency))
	s := &Store{db: p, dialect: d, own: d.onOwnSession(), concurrency: concurrency, connections: c}
	if !d.reserves {
		s.file = new(sameFile)
		turn := make(chan struct{}, 1)
		for u := range uses {
			s.lanes[u] = newLane(c, u, 1)
			s.lanes[u].turn, s.lanes[u].file = turn, s.file
		}
		return s
	}
	for u, size := range atOnce {
		s.lanes[u] = newLane(c, use(u), size)
	}
	p.waitlist = &waitlist{tempo: c.tempo}
	s.servers = newServers(p)
	c.servers, c.unanswered = s.servers, newUnanswered(s.servers, c.tempo)
	c.unanswered.version, c.unanswered.probe, c.unanswered.closed = s.serverVersion, c.probe, c.closed
	c.unanswered.ask = func(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
		return s.lanes[lockChecks].do(ctx, "ask why a write has no answer", f)
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

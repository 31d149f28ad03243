// Package sqlstore keeps tasks in a SQL database: MySQL and servers compatible with it, or SQLite.
//
// Two rules hold. A write to a task carries its guard in its own WHERE, so that correctness needs no isolation level
// and no lock. The guard is version and status; for a purge it is status and due time, for a new id the status alone. A
// write to a node is guarded by its token, one to a schedule by its version. The last write counts for tags, tokens,
// requests and receivers. And a write enters by the primary key, because a plan over a secondary index locks, and waits
// for, rows that it does not change.
package sqlstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/delaytask/delaytask/internal/store"
)

// Store implements [store.Store] on a SQL database. It also keeps the requests, tokens and receivers of the HTTP
// service. The engine does not use these, so the store in memory has none, and the conformance suite does not test
// them.
type Store struct {
	db          *pool
	dialect     dialect
	own         dialect // on the connections of the lanes
	concurrency int     // tasks that run at once: the smallest pool for processors depends on it

	connections *connections // of the writes
	lanes       [uses]*lane
	servers     *servers  // behind the address of the database; nil for an embedded one
	file        *sameFile // nil for a server
	held        held      // rows that a purge leaves out
	fileVersion fileVersion
	version     atomic.Pointer[version] // the server's last answer; nil after a lock check has failed
}

// Close discards the connections of the writes. It waits for those in use until ctx ends: they are discarded when their
// statement is done. The pool stays open.
func (s *Store) Close(ctx context.Context) error {
	return errors.Join(s.connections.close(ctx), s.fileVersion.close())
}

// lane returns the lane of a kind, or the one of what is sent apart.
func (s *Store) lane(ctx context.Context, u use) *lane {
	if store.IsApart(ctx) {
		u = apart
	}
	return s.lanes[u]
}

// roomForFileVersion is the smallest pool that spares a connection.
const roomForFileVersion = 4

// HasFileVersion reports whether FileVersion may be called: the database is embedded, and its pool spares a connection.
func (s *Store) HasFileVersion() bool {
	most := s.db.Stats().MaxOpenConnections
	return !s.dialect.reserves && (most == 0 || most >= roomForFileVersion)
}

// FileVersion returns a number. It differs from the last one if another connection has committed a change meanwhile. It
// takes no lock, and reads no page of the database. Servers have no such number.
func (s *Store) FileVersion(ctx context.Context) (int64, error) {
	return s.fileVersion.read(ctx, s.db.DB)
}

package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// CreateSession stores a session that is over after so long by the database's clock.
func (s *Store) CreateSession(ctx context.Context, r row.Session, life time.Duration) error {
	d := s.own
	query := "INSERT INTO " + sessionTable + " (hash, token, token_hash, create_time, expire_time)" +
		" VALUES (UNHEX(?), " + d.bindText + ", UNHEX(?), " + d.now + ", " + d.inMillis("?") + ")"
	return repeat(ctx, func() error {
		return s.lanes[chores].do(ctx, "store a session", func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, query, hexed(r.Hash), r.Token, hexed(r.TokenHash), life.Milliseconds())
			if isDuplicate(err) { // an insert whose reply was lost: the hash is of random bytes
				return nil
			}
			return err
		})
	})
}

// Sessions returns those that are stored under the hashes of their cookies, at most 2,000, also ones that are over, and
// the database's time if there is any.
func (s *Store) Sessions(ctx context.Context, hashes [][32]byte) (known []row.Session, now row.Reading, err error) {
	query := s.dialect.findSessions(hashes[:min(len(hashes), maxInsert)])
	err = read(ctx, s.db, query, sessions, func(f *found[row.Session]) {
		now = f.reading
		if f.err == nil && !f.row.Expires.IsZero() { // what cannot be read is no session
			known = append(known, f.row)
		}
	})
	if err != nil {
		return nil, row.Reading{}, classify("read sessions", err)
	}
	return known, now, nil
}

var sessions = newTable(sessionTable,
	hash("hash", func(r *row.Session) *[32]byte { return &r.Hash }),
	chars("token", func(r *row.Session) *string { return &r.Token }),
	hash("token_hash", func(r *row.Session) *[32]byte { return &r.TokenHash }),
	column[row.Session]{name: "create_time"},
	moment("expire_time", func(r *row.Session) *row.Time { return &r.Expires }),
)

func (d dialect) findSessions(hashes [][32]byte) clause {
	texts := make([]any, len(hashes))
	for i, hash := range hashes {
		texts[i] = hexed(hash)
	}
	return clause{"SELECT " + d.reading() + ", HEX(t.hash) AS hash, " + d.text("token") + ", HEX(token_hash)" +
		" AS token_hash, " + d.time("expire_time") + " FROM " + sessionTable + " AS t" +
		" WHERE t.hash IN (" + marks(len(texts), "UNHEX(?)") + ")", texts}
}

// DeleteSession deletes a session, if there is one.
func (s *Store) DeleteSession(ctx context.Context, hash [32]byte) error {
	return s.lanes[chores].write(ctx, "delete a session", s.own.deleteSession(hash))
}

func (d dialect) deleteSession(hash [32]byte) clause {
	return d.deleteRows(sessionTable, "t.hash = UNHEX(?)", hexed(hash))
}

// PurgeSessions deletes sessions that are over, the oldest first: at most limit, and at most 2,000. It returns how
// many.
func (s *Store) PurgeSessions(ctx context.Context, limit int) (int, error) {
	return purge(ctx, s, purging[string]{
		op: "purge sessions", lane: chores,
		old: oldOf(s, place{table: sessionTable}, func(held []string) clause {
			return s.dialect.oldSessions(held, min(limit, maxInsert))
		}),
		names:  s.own.hashes(sessionTable),
		delete: s.own.purgeSessions,
	})
}

func (d dialect) oldSessions(held []string, limit int) clause {
	return clause{"SELECT HEX(t.hash) AS hash FROM " + sessionTable + " AS t WHERE t.expire_time < " + d.now +
		without("t.hash", hashList(held)) + " ORDER BY t.expire_time LIMIT ?", []any{max(limit, 0)}}
}

func (d dialect) purgeSessions(hashes []string) clause {
	where := "t.hash IN (" + marks(len(hashes), "UNHEX(?)") + ") AND t.expire_time < " + d.now
	return d.deleteRows(sessionTable, where, anys(hashes)...)
}

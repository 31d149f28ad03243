package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// requestLife is how long a request is remembered.
const requestLife = 24 * time.Hour

var errRequestGone = errors.New("the request that was in the way is gone: try again")

// ReserveRequest remembers that a request is about to be saved as the task r.TaskID. Of several requests with one hash
// the first wins. It returns r and true for the winner, the winner's row and false for the others. They use its TaskID
// while it is not saved. A reservation that is not saved, of the same task and content, counts as the caller's own. So
// a caller can repeat one whose reply was lost.
func (s *Store) ReserveRequest(ctx context.Context, r row.Request) (row.Request, bool, error) {
	const op = "remember a request"
	r.Saved, r.Duplicate, r.Rescheduled = false, false, false
	query := "INSERT INTO " + requestTable + " (hash, content, task_id, create_time)" +
		" VALUES (UNHEX(?), UNHEX(?), ?, " + s.own.now + ")"
	var there row.Request
	err := repeat(ctx, func() error {
		return s.lanes[keyedSaves].do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, query, hexed(r.Hash), hexed(r.Content), r.TaskID)
			if err == nil {
				there = r
				return nil
			}
			if !isDuplicate(err) {
				return err
			}
			there, err = s.own.readRequest(ctx, conn, r.Hash)
			if errors.Is(err, errRequestGone) { // it was purged meanwhile
				return notApplied(op, err)
			}
			return err
		})
	})
	if err != nil {
		return row.Request{}, false, err
	}
	return there, there == r, nil
}

func (d dialect) readRequest(ctx context.Context, q queryer, hash [32]byte) (r row.Request, err error) {
	decodeErr := errRequestGone
	err = read(ctx, q, d.findRequest(hash), requests, func(f *found[row.Request]) { r, decodeErr = f.row, f.err })
	r.Hash = hash
	return r, cmp.Or(err, decodeErr)
}

func (d dialect) findRequest(hash [32]byte) clause {
	return clause{"SELECT " + requests.list(d, "", "content", "task_id", "saved", "duplicate") + " FROM " +
		requestTable + " AS t WHERE t.hash = UNHEX(?)", []any{hexed(hash)}}
}

var requests = newTable(requestTable,
	column[row.Request]{name: "hash"},
	hash("content", func(r *row.Request) *[32]byte { return &r.Content }),
	integer("task_id", 1, math.MaxInt64, func(r *row.Request) *int64 { return &r.TaskID }),
	flag("saved", math.MaxUint8, func(r *row.Request) *bool { return &r.Saved }),
	column[row.Request]{
		name: "duplicate", form: aNumber,
		decode: func(d *decoder, r *row.Request, raw []byte) {
			met := d.int("duplicate", raw, 0, math.MaxUint8)
			r.Duplicate, r.Rescheduled = met != 0, met == metAndRescheduled
		},
	},
	column[row.Request]{name: "create_time"},
)

// metAndRescheduled is the value of the column duplicate for a task that has got the time of the request. For one that
// was left as it was it is 1.
const metAndRescheduled = 2

// SaveRequest notes that the task of a request is stored, or, with Duplicate, that r.TaskID is the task that has its
// key. It does nothing for a request that was purged meanwhile.
func (s *Store) SaveRequest(ctx context.Context, r row.Request) error {
	const op = "note what became of a request"
	query := s.own.saveRequest(r)
	return repeat(ctx, func() error { return s.lanes[keyedSaves].write(ctx, op, query) })
}

func (d dialect) saveRequest(r row.Request) clause {
	met := 0
	switch {
	case r.Rescheduled:
		met = metAndRescheduled
	case r.Duplicate:
		met = 1
	}
	return clause{"UPDATE " + requestTable + " AS t" + d.byID +
		" SET task_id = ?, saved = 1, duplicate = ? WHERE t.hash = UNHEX(?)",
		[]any{r.TaskID, met, hexed(r.Hash)}}
}

// PurgeRequests deletes requests that came over 24 hours ago by the database's clock, the oldest first: at most limit,
// and at most 2,000. It returns how many.
func (s *Store) PurgeRequests(ctx context.Context, limit int) (int, error) {
	return purge(ctx, s, purging[string]{
		op: "purge requests", lane: chores,
		old: oldOf(s, place{table: requestTable}, func(held []string) clause {
			return s.dialect.oldRequests(held, min(limit, maxInsert))
		}),
		names:  s.own.hashes(requestTable),
		delete: s.own.purgeRequests,
	})
}

func (d dialect) oldRequests(held []string, limit int) clause {
	return clause{"SELECT HEX(t.hash) AS hash FROM " + requestTable + " AS t WHERE " + d.isOld("t.create_time") +
		without("t.hash", hashList(held)) + " ORDER BY t.create_time LIMIT ?",
		[]any{-requestLife.Milliseconds(), max(limit, 0)}}
}

func (d dialect) purgeRequests(hashes []string) clause {
	where := "t.hash IN (" + marks(len(hashes), "UNHEX(?)") + ") AND " + d.isOld("t.create_time")
	return d.deleteRows(requestTable, where, append(anys(hashes), -requestLife.Milliseconds())...)
}

// hashes selects the hashes of rows of a table whose key they are.
func (d dialect) hashes(from string) func(hashes []string, lock string) clause {
	return func(hashes []string, lock string) clause {
		return d.namesIn(from, "HEX(t.hash)", "t.hash IN ("+hashList(hashes)+")", lock)
	}
}

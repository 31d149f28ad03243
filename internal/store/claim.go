package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// Claim implements [engine.Holder]. Rows of several versions still go in one statement, so a lock that one of them waits for in
// vain leaves all of them unclaimed.
func (s *Store) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	var won row.Claimed
	if len(c.Rows) == 0 {
		return won, nil
	}
	query, args := s.own.claim(c)
	readBack := func(ctx context.Context, from queryer) error {
		won = row.Claimed{}
		return afterWrite("read back claimed tasks", s.winners(ctx, from, c, &won))
	}
	err := s.claim.do(ctx, "claim tasks", func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, query, args...); err != nil || !s.dialect.reserves {
			return err
		}
		return readBack(ctx, conn)
	})
	if err == nil && !s.dialect.reserves { // the one writer need not wait for the read
		err = readBack(ctx, s.db)
	}
	if err != nil {
		return row.Claimed{}, err
	}
	return won, nil
}

func (d dialect) claim(c row.Claim) (string, []any) {
	refs := sortedByID(c.Rows)
	b := newBatch(d, idsOf(refs))
	b.sets = append(b.sets,
		clause{sql: fmt.Sprintf("status = %d, version = version + 1", row.Executing)},
		// Garbage must not fail the statement: it would keep the neighbours from being claimed.
		clause{sql: fmt.Sprintf("attempt = CASE WHEN attempt < %d THEN attempt + 1 ELSE attempt END", math.MaxInt32)},
		clause{"executor = " + d.bindText, []any{c.Executor}},
		clause{"ip_address = ?", []any{int64(c.IP)}},
		clause{sql: "due_time = " + fmt.Sprintf(d.add,
			d.greatest+"("+d.now+", COALESCE(due_time, "+d.now+"))",
			fmt.Sprintf("%s(ttr, %d)", d.greatest, row.MinTTR.Milliseconds()))},
	)
	b.setNow("update_time")
	b.guard("version = %s", b.each("version", "?", versionsOf(refs)))
	b.guards = append(b.guards, clause{sql: fmt.Sprintf("status = %d", row.Pending)})
	return b.statement()
}

// winners reads back what the claim won, and the clock. They are found by the executor, which is fresh for each claim.
func (s *Store) winners(ctx context.Context, from queryer, c row.Claim, won *row.Claimed) error {
	query, args := s.own.winners(c)
	found := page{rows: make([]row.Row, 0, len(c.Rows))}
	err := scan(ctx, from, query, args, func(r *record) (err error) {
		if r.DBTime != nil {
			if won.Reading, err = r.reading(); err != nil {
				return err
			}
		}
		return found.put(r.claimed(c))
	})
	if err != nil {
		return err
	}
	won.Rows, won.Broken = found.rows, found.broken
	if won.Reading.Time.IsZero() { // the row that the clock is read in was not won
		won.Reading, err = readClock(ctx, s.dialect, from)
	}
	return err
}

func (d dialect) winners(c row.Claim) (string, []any) {
	ids := sortedIDs(c.Rows, refID)
	return "SELECT " + d.claimedList(ids[0]) + " FROM " + table + d.byID + " WHERE id IN (" + idList(ids) + ")" +
			fmt.Sprintf(" AND status = %d", row.Executing) + " AND " + fmt.Sprintf(d.sameText, "executor") + " ORDER BY id",
		[]any{c.Executor}
}

// afterWrite marks an error of a read that followed a write on the same connection: the write was applied, so whatever the error
// says of the read, the outcome as a whole is not known.
func afterWrite(op string, err error) error {
	if err == nil {
		return nil
	}
	return &row.Error{Class: row.ClassUnknown, Op: op, Err: err}
}

func refID(r row.Ref) int64 { return r.ID }

func sortedByID(refs []row.Ref) []row.Ref {
	return slices.SortedFunc(slices.Values(refs), func(a, b row.Ref) int { return cmp.Compare(a.ID, b.ID) })
}

func idsOf(refs []row.Ref) []int64 {
	ids := make([]int64, len(refs))
	for i, r := range refs {
		ids[i] = r.ID
	}
	return ids
}

func versionsOf(refs []row.Ref) []any {
	versions := make([]any, len(refs))
	for i, r := range refs {
		versions[i] = r.Version
	}
	return versions
}

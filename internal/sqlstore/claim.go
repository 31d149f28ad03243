package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sabotage"
)

// Claim implements [store.Leaser]. Rows of several versions still go in one statement, so a lock that one of them waits
// for in vain leaves all of them unclaimed. A statement that is refused because another one changed one of its rows
// first, as happens where the members of a cluster certify what they write, is followed by one for each row.
func (s *Store) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	var won row.Claimed
	if len(c.Rows) == 0 {
		return won, nil
	}
	var refused []row.Broken
	if c.Rows, refused = withoutUsedUp(c.Rows); len(c.Rows) == 0 {
		reading, err := s.Now(ctx)
		return row.Claimed{Reading: reading, Broken: refused}, err
	}
	readBack := func(ctx context.Context, from queryer) error {
		won = row.Claimed{}
		return afterWrite("read back claimed tasks", s.winners(ctx, from, c, &won))
	}
	err := s.claim.do(ctx, "claim tasks", func(ctx context.Context, conn *sql.Conn) error {
		err := s.own.claimOn(ctx, conn, c)
		if collided(err) && len(c.Rows) > 1 {
			err = s.own.claimEach(ctx, conn, c)
		}
		if err != nil || !s.dialect.reserves {
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
	won.Broken = append(won.Broken, refused...)
	return won, nil
}

// withoutUsedUp takes out the rows whose version cannot grow. They would fail the statement, or be claimed for ever.
func withoutUsedUp(refs []row.Ref) ([]row.Ref, []row.Broken) {
	isUsedUp := func(r row.Ref) bool { return r.Version >= usedUp }
	if !slices.ContainsFunc(refs, isUsedUp) {
		return refs, nil
	}
	var refused []row.Broken
	refs = slices.DeleteFunc(slices.Clone(refs), func(r row.Ref) bool {
		if isUsedUp(r) {
			refused = append(refused, row.Broken{Ref: r, Status: row.Pending, Reason: "column version: it is used up"})
		}
		return isUsedUp(r)
	})
	return refs, refused
}

func (d dialect) claimOn(ctx context.Context, conn execer, c row.Claim) error {
	query, args := d.claim(c)
	_, err := conn.ExecContext(ctx, query, args...)
	return err
}

// claimEach claims row by row, in no order, so that two who are after the same rows meet at few of them. A row at which
// they do is lost to the other. The first row that is locked is the last one tried: waiting for more would be for the
// caller to decide.
func (d dialect) claimEach(ctx context.Context, conn execer, c row.Claim) error {
	refs := slices.Clone(c.Rows)
	rand.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	claimed := 0
	for _, ref := range refs {
		c.Rows = []row.Ref{ref}
		err := d.claimOn(ctx, conn, c)
		switch {
		case err == nil:
			claimed++
		case collided(err):
		case claimed == 0:
			return err
		case row.ClassOf(classify("", err)) == row.ClassLocked:
			return nil
		default:
			return afterWrite("claim the rest of the tasks", err)
		}
	}
	return nil
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
		clause{sql: fmt.Sprintf(d.lease, d.greatest+"("+d.now+", COALESCE(due_time, "+d.now+"))",
			fmt.Sprintf("%s(ttr, %d)", d.greatest, row.MinTTR.Milliseconds()))},
	)
	b.setNow("update_time")
	if sabotage.Off(sabotage.Guard) {
		b.guards = append(b.guards, clause{sql: "1 = 1"})
		return b.statement()
	}
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

// afterWrite marks an error of a read that followed a write on the same connection: the write was applied, so whatever
// the error says of the read, the outcome as a whole is not known.
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

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Claim implements [store.Leaser]. Rows of several versions still go in one statement, so a lock that does not end in
// time leaves all of them unclaimed. A server may roll the claim back in favour of another write to one of its rows, as
// members of a cluster do that certify writes. Then Claim sends a statement for each row.
func (s *Store) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	var won row.Claimed
	if len(c.Rows) == 0 {
		return won, nil
	}
	var refused []row.Broken
	if c.Rows, refused = splitUsedUp(c.Rows); len(c.Rows) == 0 {
		reading, err := s.Now(ctx)
		return row.Claimed{Reading: reading, Broken: refused}, err
	}
	readBack := func(ctx context.Context, from queryer) error {
		won = row.Claimed{}
		return afterWrite("read back claimed tasks", s.winners(ctx, from, c, &won))
	}
	err := s.lane(ctx, claims).do(ctx, "claim tasks", func(ctx context.Context, conn *sql.Conn) error {
		err := s.own.claimOn(ctx, conn, c)
		if collided(err) && len(c.Rows) > 1 {
			err = s.own.claimEach(ctx, conn, c)
		}
		if err != nil || !s.dialect.reserves {
			return err
		}
		return readBack(ctx, conn)
	})
	if err == nil && !s.dialect.reserves { // the next writer need not wait for the read
		err = readBack(ctx, s.db)
	}
	if err != nil {
		return row.Claimed{}, err
	}
	won.Broken = append(won.Broken, refused...)
	return won, nil
}

// splitUsedUp separates rows whose version cannot grow. They would fail the statement, or be claimed again and again.
func splitUsedUp(refs []row.Ref) ([]row.Ref, []row.Broken) {
	isUsedUp := func(r row.Ref) bool { return r.Version >= usedUp }
	if !slices.ContainsFunc(refs, isUsedUp) {
		return refs, nil
	}
	var refused []row.Broken
	refs = slices.DeleteFunc(slices.Clone(refs), func(r row.Ref) bool {
		if isUsedUp(r) {
			refused = append(refused, row.Broken{
				Ref: r, Status: row.Pending, Reason: "column version: it is used up",
				Read: row.Row{ID: r.ID, Version: r.Version},
			})
		}
		return isUsedUp(r)
	})
	return refs, refused
}

func (d dialect) claimOn(ctx context.Context, conn execer, c row.Claim) error {
	_, err := execute(ctx, conn, d.claim(c))
	return err
}

// claimEach claims row by row, in random order, so that two claims of the same rows collide at few of them. The other
// claim wins such a row. claimEach ends at the first locked row: the caller decides on further waits.
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
		case isLocked(err):
			return nil
		default:
			return afterWrite("claim the rest of the tasks", err)
		}
	}
	return nil
}

func (d dialect) claim(c row.Claim) clause {
	b, values := batchOf(d, c.Rows, refID)
	b.sets = append(b.sets,
		clause{sql: fmt.Sprintf("status = %d, version = version + 1", row.Executing)},
		// Garbage must not fail the statement, and with it the other rows.
		clause{sql: fmt.Sprintf("attempt = CASE WHEN attempt < %d THEN attempt + 1 ELSE attempt END", math.MaxInt32)},
		clause{sql: fmt.Sprintf("process = %d, claim = %d", c.Executor.Process, c.Executor.Claim)},
		clause{"ip_address = ?", []any{int64(c.IP)}},
		clause{sql: fmt.Sprintf(d.lease, d.greatest+"("+d.now+", COALESCE(due_time, "+d.now+"))",
			fmt.Sprintf("%s(ttr, %d)", d.greatest, row.MinTTR.Milliseconds()))},
	)
	b.setNow("update_time")
	b.guard("version = %s", b.each("version", "?", values(refVersion)))
	b.guards = append(b.guards, clause{sql: fmt.Sprintf("status = %d", row.Pending)})
	return b.statement()
}

// winners reads back what the claim won, and the clock. They are found by the executor, which is fresh for each claim.
func (s *Store) winners(ctx context.Context, from queryer, c row.Claim, won *row.Claimed) error {
	rows, asked := page{rows: make([]row.Row, 0, len(c.Rows))}, time.Now()
	bytes := 0
	err := read(ctx, from, s.own.winners(c), tasks, func(f *found[row.Row]) {
		if !f.reading.Time.IsZero() {
			won.Reading, won.Reading.Asked = f.reading, asked
		}
		f.row.Status, f.row.Executor, f.row.IPAddress = row.Executing, c.Executor, c.IP
		bytes += len(f.row.Body)
		if f.err == nil && c.Bytes > 0 && bytes > c.Bytes && len(rows.rows) > 0 {
			f.row.Body = nil
			won.Unread = append(won.Unread, f.row)
			return
		}
		rows.add(f)
	})
	if err != nil {
		return err
	}
	won.Rows, won.Broken = rows.rows, rows.broken
	if won.Reading.Time.IsZero() { // the row that the clock is read in was not won
		won.Reading, err = readClock(ctx, s.dialect, from)
	}
	return err
}

func (d dialect) winners(c row.Claim) clause {
	ids := sortedIDs(c.Rows, refID)
	return clause{sql: "SELECT " + d.claimedList(ids[0]) + " FROM " + table + d.byID +
		" WHERE id IN (" + idList(ids) + ")" +
		fmt.Sprintf(" AND status = %d AND process = %d AND claim = %d ORDER BY id",
			row.Executing, c.Executor.Process, c.Executor.Claim)}
}

func refID(r row.Ref) int64     { return r.ID }
func refVersion(r *row.Ref) any { return r.Version }

// Renew implements [store.Leaser].
func (s *Store) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	renewal := s.own.renew(leases)
	ids := sortedIDs(leases, leaseID)
	var states []row.State
	err := s.lane(ctx, renewals).do(ctx, "renew leases", func(ctx context.Context, conn *sql.Conn) error {
		if _, err := execute(ctx, conn, renewal); err != nil {
			return err
		}
		var err error
		states, err = statesOf(ctx, s.dialect, conn, ids)
		return afterWrite("read back renewed leases", err)
	})
	return states, err
}

func (d dialect) renew(leases []row.Lease) clause {
	b, values := batchOf(d, leases, leaseID)
	ttr := b.each("ttr", "?", values(func(l *row.Lease) any { return max(l.TTR, row.MinTTR).Milliseconds() }))
	until := clause{fmt.Sprintf(d.add, d.now, ttr.sql), ttr.args}
	if slices.ContainsFunc(leases, func(l row.Lease) bool { return l.Least }) {
		least := b.each("least", "?", values(func(l *row.Lease) any { return number(l.Least) }))
		kept := "CASE " + least.sql + " WHEN 1 THEN due_time ELSE " + d.now + " END"
		until.sql = d.greatest + "(" + until.sql + ", " + kept + ")"
		until.args = slices.Concat(until.args, least.args)
	}
	b.set("due_time", "%s", until)
	b.setNow("update_time")
	b.setGiven("process", "?", values(func(l *row.Lease) any { return orNull(l.Executor.Process) }))
	b.setGiven("claim", "?", values(func(l *row.Lease) any { return orNull(l.Executor.Claim) }))
	b.setGiven("start_time", "?", values(func(l *row.Lease) any { return orNull(l.Execution) }))
	b.setGiven("late_reason", "?", values(func(l *row.Lease) any { return orNull(lateReasons.of(l.Late)) }))
	b.guard("version = %s", b.each("version", "?", values(func(l *row.Lease) any { return l.Version })))
	b.guards = append(b.guards, clause{sql: fmt.Sprintf("status = %d", row.Executing)})
	return b.statement()
}

func leaseID(l row.Lease) int64 { return l.ID }

// Update implements [store.Leaser].
func (s *Store) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	const op = "settle tasks"
	if len(changes) == 0 {
		return 0, nil
	}
	if tx != nil {
		ctx, cancel := withDeadline(ctx)
		defer cancel()
		if err := s.file.check(ctx, tx); err != nil {
			return 0, err
		}
		n, err := execute(ctx, tx, s.dialect.update(changes))
		return n, classify(op, err)
	}
	return s.lane(ctx, results).execute(ctx, op, s.own.update(changes))
}

func (d dialect) update(changes []row.Change) clause {
	b, values := batchOf(d, changes, func(c row.Change) int64 { return c.ID })
	b.setEach("status", "?", values(func(c *row.Change) any { return int64(c.To) }))
	b.sets = append(b.sets, clause{sql: "version = version + 1"})
	b.setEach("due_time", "?", values(func(c *row.Change) any { return orNull(c.Due) }))
	b.setEach("attempt", "?", values(func(c *row.Change) any { return int64(c.Attempt) }))
	b.setEach("crash_count", "?", values(func(c *row.Change) any { return int64(c.CrashCount) }))
	b.setEach("start_time", "?", values(func(c *row.Change) any { return orUnset(c.Execution) }))
	b.setEach("error_stack", d.bindText, values(func(c *row.Change) any { return orNull(c.ErrorStack) }))
	b.setEach("errors", d.bindText, values(func(c *row.Change) any { return textOrNull(c.Errors) }))
	if slices.ContainsFunc(changes, func(c row.Change) bool { return !c.SameExecutor }) {
		b.setEach("process", "?", values(func(c *row.Change) any { return c.Executor.Process }))
		b.setEach("claim", "?", values(func(c *row.Change) any { return c.Executor.Claim }))
	}
	b.setNow("update_time")
	b.setGiven("late_reason", "?", values(func(c *row.Change) any {
		if c.Execution.IsZero() {
			return lateReasons.of(c.Late)
		}
		return orNull(lateReasons.of(c.Late))
	}))
	b.setGiven("expected_time", "?", values(func(c *row.Change) any { return orNull(c.Expected) }))
	b.setGiven("delay_time", "?", values(func(c *row.Change) any {
		if c.Expected.IsZero() {
			return nil
		}
		return c.Delay.Milliseconds()
	}))
	b.setGiven("message_body", d.bindText, values(func(c *row.Change) any { return textOrNull(c.Body) }))

	b.guard("version = %s", b.each("at_version", "?", values(func(c *row.Change) any { return c.Version })))
	b.guard("status = %s", b.each("from_status", "?", values(func(c *row.Change) any { return int64(c.From) })))
	if slices.ContainsFunc(changes, func(c row.Change) bool { return c.LeaseOver }) {
		leaseOver := values(func(c *row.Change) any { return number(c.LeaseOver) })
		b.guard("(%s = 0 OR due_time IS NULL OR due_time < "+d.now+")", b.each("lease_over", "?", leaseOver))
	}
	if slices.ContainsFunc(changes, func(c row.Change) bool { return !c.LeaseBy.IsZero() }) {
		leaseBy := values(func(c *row.Change) any { return orNull(c.LeaseBy) })
		b.guard("COALESCE(due_time <= CAST(%s AS "+d.timeType+"), 1)", b.each("lease_by", "?", leaseBy))
	}
	return b.statement()
}

// Adopt implements [store.Leaser]. A due time before the earliest that delaytask knows, like the zero date of a lax
// server, counts as none.
func (s *Store) Adopt(ctx context.Context, rows []row.Ref) error {
	if len(rows) == 0 {
		return nil
	}
	return s.lane(ctx, chores).write(ctx, "adopt tasks", s.own.adopt(rows))
}

func (d dialect) adopt(rows []row.Ref) clause {
	earliest := row.MinTime.String()
	b, values := batchOf(d, rows, refID)
	b.sets = append(b.sets, clause{
		"due_time = CASE WHEN expected_time >= ? THEN expected_time ELSE " + d.now + " END", []any{earliest},
	})
	b.setNow("update_time")
	b.guard("version = %s", b.each("version", "?", values(refVersion)))
	b.guards = append(b.guards,
		clause{sql: fmt.Sprintf("status = %d", row.Pending)},
		clause{"(due_time IS NULL OR due_time < ?)", []any{earliest}},
	)
	return b.statement()
}

// Discard implements [store.Leaser].
func (s *Store) Discard(ctx context.Context, broken []row.Broken) (int, error) {
	if len(broken) == 0 {
		return 0, nil
	}
	return s.lanes[chores].execute(ctx, "set aside tasks that cannot be decoded", s.own.discard(broken))
}

// discard replaces a version that is used up. Otherwise the row would stay unreadable.
func (d dialect) discard(broken []row.Broken) clause {
	b, values := batchOf(d, broken, func(b row.Broken) int64 { return b.ID })
	const set = "status = %d, version = CASE WHEN version < %d THEN version + 1 ELSE %d END"
	b.sets = append(b.sets, clause{sql: fmt.Sprintf(set, row.Failed, usedUp, usedUp/2)})
	b.setEach("error_stack", d.bindText, values(func(b *row.Broken) any { return b.Reason }))
	b.setNow("due_time")
	b.setNow("update_time")
	b.guard(fmt.Sprintf("CASE WHEN version < %[1]d THEN version ELSE %[1]d END = %%s", math.MaxInt64),
		b.each("version", "?", values(func(b *row.Broken) any { return b.Version })))
	b.guard("status = %s", b.each("status", "?", values(func(b *row.Broken) any { return int64(b.Status) })))
	return b.statement()
}

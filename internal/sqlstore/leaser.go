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
	"github.com/delaytask/delaytask/internal/store"
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

// Renew implements [store.Leaser].
func (s *Store) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	query, args := s.own.renew(leases)
	ids := sortedIDs(leases, func(l row.Lease) int64 { return l.ID })
	var states []row.State
	err := s.renew.do(ctx, "renew leases", func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		var err error
		states, err = statesOf(ctx, s.dialect, conn, ids)
		return afterWrite("read back renewed leases", err)
	})
	return states, err
}

func (d dialect) renew(leases []row.Lease) (string, []any) {
	leases = slices.SortedFunc(slices.Values(leases), func(a, b row.Lease) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(leases))
	versions := make([]any, len(leases))
	ttrs := make([]any, len(leases))
	least := make([]any, len(leases))
	executors := make([]any, len(leases))
	executions := make([]any, len(leases))
	for i, l := range leases {
		ids[i], versions[i], ttrs[i] = l.ID, l.Version, max(l.TTR, row.MinTTR).Milliseconds()
		least[i] = int64(0)
		if l.Least {
			least[i] = int64(1)
		}
		executors[i], executions[i] = orNull(l.Executor), momentOrNull(l.Execution)
	}
	b := newBatch(d, ids)
	ttr := b.each("ttr", "?", ttrs)
	until := clause{fmt.Sprintf(d.add, d.now, ttr.sql), ttr.args}
	if slices.Contains(least, any(int64(1))) {
		isLeast := b.each("least", "?", least)
		until.sql = d.greatest + "(" + until.sql + ", CASE " + isLeast.sql + " WHEN 1 THEN due_time ELSE " + d.now + " END)"
		until.args = slices.Concat(until.args, isLeast.args)
	}
	b.set("due_time", "%s", until)
	b.setNow("update_time")
	b.setGiven("executor", d.bindText, executors)
	b.setGiven("execution_time", "?", executions)
	b.guard("version = %s", b.each("version", "?", versions))
	b.guards = append(b.guards, clause{sql: fmt.Sprintf("status = %d", row.Executing)})
	return b.statement()
}

// Update implements [store.Leaser].
func (s *Store) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	const op = "settle tasks"
	if len(changes) == 0 {
		return 0, nil
	}
	if tx != nil {
		query, args := s.dialect.update(changes)
		ctx, cancel := withDeadline(ctx)
		defer cancel()
		n, err := execute(ctx, tx, query, args)
		return n, classify(op, err)
	}
	query, args := s.own.update(changes)
	var applied int
	err := s.settle.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		applied, err = execute(ctx, conn, query, args)
		return err
	})
	return applied, err
}

func (d dialect) update(changes []row.Change) (string, []any) {
	changes = slices.SortedFunc(slices.Values(changes), func(a, b row.Change) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(changes))
	for i, c := range changes {
		ids[i] = c.ID
	}
	values := func(of func(*row.Change) any) []any {
		v := make([]any, len(changes))
		for i := range changes {
			v[i] = of(&changes[i])
		}
		return v
	}
	b := newBatch(d, ids)
	b.setEach("status", "?", values(func(c *row.Change) any { return int64(c.To) }))
	b.sets = append(b.sets, clause{sql: "version = version + 1"})
	b.setEach("due_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Due) }))
	b.setEach("attempt", "?", values(func(c *row.Change) any { return int64(c.Attempt) }))
	b.setEach("crash_count", "?", values(func(c *row.Change) any { return int64(c.CrashCount) }))
	b.setEach("execution_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Execution) }))
	b.setEach("finish_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Finish) }))
	b.setEach("error_stack", d.bindText, values(func(c *row.Change) any { return orNull(c.ErrorStack) }))
	b.setEach("errors", d.bindText, values(func(c *row.Change) any { return textOrNull(c.Errors) }))
	if slices.ContainsFunc(changes, func(c row.Change) bool { return !c.SameExecutor }) {
		b.setEach("executor", d.bindText, values(func(c *row.Change) any { return c.Executor }))
	}
	b.setNow("update_time")
	b.setGiven("expected_time", "?", values(func(c *row.Change) any { return momentOrNull(c.Expected) }))
	b.setGiven("delay_time", "?", values(func(c *row.Change) any {
		if c.Expected.IsZero() {
			return nil
		}
		return c.Delay.Milliseconds()
	}))
	b.setGiven("message_body", d.bindText, values(func(c *row.Change) any { return textOrNull(c.Body) }))

	if sabotage.Off(sabotage.Fence) && !slices.ContainsFunc(changes, func(c row.Change) bool { return c.From != row.Executing }) {
		b.guards = append(b.guards, clause{sql: "1 = 1"})
		return b.statement()
	}
	b.guard("version = %s", b.each("at_version", "?", values(func(c *row.Change) any { return c.Version })))
	b.guard("status = %s", b.each("from_status", "?", values(func(c *row.Change) any { return int64(c.From) })))
	if slices.ContainsFunc(changes, func(c row.Change) bool { return c.LeaseOver }) {
		b.guard("(%s = 0 OR due_time IS NULL OR due_time < "+d.now+")", b.each("lease_over", "?", values(func(c *row.Change) any {
			if c.LeaseOver {
				return int64(1)
			}
			return int64(0)
		})))
	}
	return b.statement()
}

// Adopt implements [store.Leaser]. A due time before any that delaytask knows, like the zero date of a lax server,
// counts as none.
func (s *Store) Adopt(ctx context.Context, rows []row.Ref) error {
	if len(rows) == 0 {
		return nil
	}
	query, args := s.own.adopt(rows)
	return s.keep.do(ctx, "adopt tasks", func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query, args...)
		return err
	})
}

func (d dialect) adopt(rows []row.Ref) (string, []any) {
	refs := sortedByID(rows)
	earliest := row.MinTime.String()
	b := newBatch(d, idsOf(refs))
	b.sets = append(b.sets, clause{
		"due_time = CASE WHEN expected_time >= ? THEN expected_time ELSE " + d.now + " END", []any{earliest},
	})
	b.setNow("update_time")
	b.guard("version = %s", b.each("version", "?", versionsOf(refs)))
	b.guards = append(b.guards,
		clause{sql: fmt.Sprintf("status = %d", row.Pending)},
		clause{"(due_time IS NULL OR due_time < ?)", []any{earliest}},
	)
	return b.statement()
}

// Discard implements [store.Leaser].
func (s *Store) Discard(ctx context.Context, broken []row.Broken) error {
	if len(broken) == 0 {
		return nil
	}
	query, args := s.own.discard(broken)
	return s.keep.do(ctx, "set aside tasks that cannot be decoded", func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query, args...)
		return err
	})
}

// discard sets a version that is used up to one that is not, else the row could not be read afterwards either.
func (d dialect) discard(broken []row.Broken) (string, []any) {
	broken = slices.SortedFunc(slices.Values(broken), func(a, b row.Broken) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(broken))
	versions := make([]any, len(broken))
	statuses := make([]any, len(broken))
	reasons := make([]any, len(broken))
	for i, r := range broken {
		ids[i], versions[i], statuses[i], reasons[i] = r.ID, r.Version, int64(r.Status), r.Reason
	}
	b := newBatch(d, ids)
	b.sets = append(b.sets, clause{sql: fmt.Sprintf("status = %d, version = CASE WHEN version < %d THEN version + 1 ELSE %d END",
		row.Failed, usedUp, usedUp/2)})
	b.setEach("error_stack", d.bindText, reasons)
	b.setNow("finish_time")
	b.setNow("due_time")
	b.setNow("update_time")
	b.guard(fmt.Sprintf("CASE WHEN version < %[1]d THEN version ELSE %[1]d END = %%s", math.MaxInt64),
		b.each("version", "?", versions))
	b.guard("status = %s", b.each("status", "?", statuses))
	return b.statement()
}

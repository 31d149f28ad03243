package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

// maxBranches is how many tags one query reads in branches of their own. A branch reads at most limit rows of its tag.
// A single range over many tags is cheaper to plan, but reads everything in the window. SQLite takes at most 500
// branches.
const maxBranches = 32

// Due implements [store.Finder].
func (s *Store) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	var due []row.Due
	tags := row.Distinct(w.Tags)
	if w.Limit <= 0 || len(tags) == 0 {
		return nil, nil
	}
	// A window that is open to the past may hold a backlog of any size, so there every tag needs a branch with a limit.
	size := maxBranches
	if !w.From.IsZero() {
		size = max(maxBranches, len(tags))
	}
	for group := range slices.Chunk(tags, size) {
		w.Tags = group
		err := read(ctx, s.db, s.dialect.ended(ctx, s.dialect.due(w)), tasks, func(f *found[row.Row]) {
			if f.row.ID > 0 { // Renumber gives the others an id first
				due = append(due, f.row.Sighting()) // what cannot be read is zero: the claim reports the row as broken
			}
		})
		if err != nil {
			return nil, classify("find due tasks", err)
		}
	}
	slices.SortFunc(due, func(a, b row.Due) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	return due[:min(len(due), w.Limit)], nil
}

func (d dialect) due(w row.Window) clause {
	var branches []clause
	in := clause{"tag IN (" + marks(len(w.Tags), "?") + ")", anys(w.Tags)}
	if w.Lacking && !w.From.IsZero() {
		branches = append(branches, d.dueBranch(in.sql, in.args, "id", w.Limit,
			d.ofShare(w, clause{sql: "due_time IS NULL"})...))
	}
	if len(w.Tags) > maxBranches {
		branches = append(branches, d.dueBranch(in.sql, in.args, byDueTime, w.Limit, d.ofShare(w, within(w)...)...))
		return unionAll(branches)
	}
	for _, tag := range w.Tags {
		if w.From.IsZero() {
			lacking := clause{"due_time IS NULL AND id > ?", []any{w.AfterID}}
			branches = append(branches, d.dueBranch("tag = ?", []any{tag}, "id", w.Limit, d.ofShare(w, lacking)...))
		}
		timed := d.ofShare(w, within(w)...)
		branches = append(branches, d.dueBranch("tag = ?", []any{tag}, byDueTime, w.Limit, timed...))
	}
	return unionAll(branches)
}

// within limits a read to the rows of the window that have a due time. Those without are a range of their own, because
// SQLite does not read two ranges in the order of the index.
func within(w row.Window) []clause {
	limits := []clause{{"due_time < ?", []any{w.To}}}
	if !w.From.IsZero() {
		limits = append(limits, clause{"due_time >= ?", []any{w.From}})
	}
	if !w.From.IsZero() && w.AfterID > 0 {
		limits = append(limits, clause{"(due_time > ? OR id > ?)", []any{w.From, w.AfterID}})
	}
	return limits
}

// ofShare adds the condition that a row is of the share of the window. The index by due time ends with the id, so the
// server checks it there. A list of numbers is what servers compare fastest.
func (d dialect) ofShare(w row.Window, limits ...clause) []clause {
	if w.Share == nil {
		return limits
	}
	most := w.Share.Slots() > ids.HashSlots/2
	of := " IN ("
	if most {
		of = " NOT IN ("
	}
	slot := fmt.Sprintf("(%s(id) * %d >> %d & %d)", d.checksum, ids.SpreadBy, ids.SlotShift, ids.HashSlots-1)
	numbers := strconv.AppendInt(nil, ids.HashSlots, 10) // no slot, so that a list is never empty
	for i := range ids.HashSlots {
		if w.Share.HasSlot(i) != most {
			numbers = strconv.AppendInt(append(numbers, ','), int64(i), 10)
		}
	}
	return append(limits, clause{slot + of + string(numbers) + ")", nil})
}

// byDueTime names the column with its table, because an alias of its text hides it.
const byDueTime = table + ".due_time, id"

// shortlyNamed selects columns as expressions. With a column, a MySQL server names the database and, twice, the table.
// With an expression it sends the alias alone. These names are most of an empty answer.
const shortlyNamed = ", version + 0 AS version, priority + 0 AS priority, crash_count + 0 AS crash_count"

func (d dialect) dueBranch(tags string, args []any, order string, limit int, limits ...clause) clause {
	where := joined(append([]clause{{tags + d.exactTag, args}}, limits...), " AND ")
	return clause{"SELECT " + tasks.list(d, "", "id", "tag", "due_time") + shortlyNamed +
		" FROM " + table + d.byDue + fmt.Sprintf(" WHERE status = %d AND ", row.Pending) + where.sql +
		" ORDER BY " + order + " LIMIT " + fmt.Sprint(limit), where.args}
}

// mostRanges is how many tags one statement names, whose ranges the server keeps in memory while it plans.
const mostRanges = 1000

// Expired implements [store.Finder]. An executing row without a due time counts as one whose lease has ended.
func (s *Store) Expired(ctx context.Context, tags []string, limit int) (
	rows []row.Row, broken []row.Broken, err error) {
	for group := range slices.Chunk(row.Distinct(tags), mostRanges) {
		r, b, err := readTasks(ctx, "find ended leases", s.db, s.dialect.ended(ctx, s.dialect.expired(group, limit)))
		if err != nil {
			return nil, nil, err
		}
		rows, broken = append(rows, r...), append(broken, b...)
	}
	slices.SortFunc(rows, func(a, b row.Row) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	return rows[:min(len(rows), limit)], broken, nil
}

func (d dialect) expired(tags []string, limit int) clause {
	from := d.executing(tags)
	return clause{"SELECT " + d.taskList(false) + from.sql + " AND (due_time IS NULL OR due_time < " + d.now +
		") ORDER BY " + byDueTime + " LIMIT " + fmt.Sprint(limit), from.args}
}

// executing begins to read the executing rows of the tags.
func (d dialect) executing(tags []string) clause {
	return clause{" FROM " + table + d.byDue + fmt.Sprintf(" WHERE status = %d AND tag IN (", row.Executing) +
		marks(len(tags), "?") + ")", anys(tags)}
}

// Orphans implements [store.Finder].
func (s *Store) Orphans(ctx context.Context, tags []string, processes []int64, limit int) (
	states []row.State, err error) {
	if len(processes) == 0 {
		return nil, nil
	}
	for group := range slices.Chunk(row.Distinct(tags), mostRanges) {
		query := s.dialect.orphans(group, processes, limit-len(states))
		found, err := readStates(ctx, s.db, s.dialect.ended(ctx, query))
		if err != nil {
			return nil, classify("find executing tasks", err)
		}
		states = append(states, found...)
	}
	return states, nil
}

func (d dialect) orphans(tags []string, processes []int64, limit int) clause {
	from := d.executing(tags)
	return clause{"SELECT " + selectList(d, "", stateColumns) + from.sql + " AND process IN (" + idList(processes) +
		") ORDER BY id LIMIT " + fmt.Sprint(limit), from.args}
}

// States implements [store.Finder].
func (s *Store) States(ctx context.Context, ids []int64) ([]row.State, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	states, err := statesOf(ctx, s.dialect, s.db, ids)
	return states, classify("read the states of tasks", err)
}

// Locked implements [store.Finder].
func (s *Store) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	return locked(ctx, s, row.Distinct(ids), s.own.selectByID)
}

// locked returns which of the rows another transaction has locked. names selects the keys of those that exist, with the
// words that lock them. What FOR UPDATE SKIP LOCKED leaves out is locked, or does not exist.
func locked[K comparable](ctx context.Context, s *Store, keys []K, names func(keys []K, lock string) clause) (
	locked []K, err error) {
	if len(keys) == 0 || !s.dialect.rowLocks {
		return nil, nil
	}
	err = s.lanes[lockChecks].do(ctx, "look for locked rows", func(ctx context.Context, conn *sql.Conn) error {
		v, err := s.serverVersion(ctx, conn)
		if err != nil {
			return err
		}
		look := lockedByHalving[K]
		if v.skipsLocked() {
			look = lockedBySkipping[K]
		}
		locked, err = look(ctx, conn, slices.Clone(keys), names)
		return err
	})
	if err != nil {
		s.version.Store(nil) // another server may answer the next time
	}
	return locked, err
}

// serverVersion asks the server once and remembers the answer.
func (s *Store) serverVersion(ctx context.Context, conn *sql.Conn) (version, error) {
	if v := s.version.Load(); v != nil {
		return *v, nil
	}
	var name string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&name); err != nil {
		return version{}, err
	}
	v := parseVersion(name, "")
	s.version.Store(&v)
	return v, nil
}

// lockedBySkipping asks for the rows that can be locked, and which of the others exist. A row may be locked by its own
// DELETE or INSERT. Only a read of committed rows sees the first, and only a read of uncommitted rows the second.
func lockedBySkipping[K comparable](
	ctx context.Context, conn *sql.Conn, keys []K, names func([]K, string) clause) ([]K, error) {
	query := names(keys, "")
	committed, err := firsts[K](ctx, conn, query)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadUncommitted})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // the locks end with it
	existing, err := firsts[K](ctx, tx, query)
	if err != nil {
		return nil, err
	}
	free, err := firsts[K](ctx, tx, names(keys, " FOR UPDATE SKIP LOCKED"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(keys, func(key K) bool {
		return slices.Contains(free, key) || !slices.Contains(committed, key) && !slices.Contains(existing, key)
	}), nil
}

// lockedByHalving finds the locked rows with a statement that fails at once when one of its rows is locked.
func lockedByHalving[K comparable](
	ctx context.Context, conn *sql.Conn, keys []K, names func([]K, string) clause) ([]K, error) {
	err := tryLock[K](ctx, conn, names(keys, " FOR UPDATE NOWAIT"))
	if !isLocked(err) {
		return nil, err
	}
	if len(keys) == 1 {
		return keys, nil
	}
	first, err := lockedByHalving(ctx, conn, keys[:len(keys)/2], names)
	if err != nil {
		return nil, err
	}
	second, err := lockedByHalving(ctx, conn, keys[len(keys)/2:], names)
	return slices.Concat(first, second), err
}

func tryLock[K any](ctx context.Context, conn *sql.Conn, query clause) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // the locks end with it
	_, err = firsts[K](ctx, tx, query)
	return err
}

func (d dialect) selectByID(ids []int64, lock string) clause {
	return clause{sql: "SELECT id FROM " + table + d.byID + " WHERE id IN (" + idList(ids) + ")" + lock}
}

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// Locked implements [store.Finder]. What FOR UPDATE SKIP LOCKED leaves out is locked, or does not exist.
func (s *Store) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	if len(ids) == 0 || !s.dialect.rowLocks {
		return nil, nil
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var locked []int64
	err := s.probe.do(ctx, "look for locked tasks", func(ctx context.Context, conn *sql.Conn) (err error) {
		v, err := s.serverVersion(ctx, conn)
		if err != nil {
			return err
		}
		if v.skipsLocked() {
			locked, err = skipped(ctx, conn, ids)
		} else {
			locked, err = refused(ctx, conn, ids)
		}
		return err
	})
	if err != nil {
		s.version.Store(nil) // another server may answer the next time
	}
	return locked, err
}

// serverVersion asks once and remembers the answer.
func (s *Store) serverVersion(ctx context.Context, conn *sql.Conn) (version, error) {
	if v := s.version.Load(); v != nil {
		return *v, nil
	}
	var name string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&name); err != nil {
		return version{}, err
	}
	v := parseVersion(name)
	s.version.Store(&v)
	return v, nil
}

// skipped asks for the rows that can be locked, and which of the others exist. A row may be locked because it is being
// deleted or being inserted: only a committed read sees the first, and only a read of what is not committed the second.
func skipped(ctx context.Context, conn *sql.Conn, ids []int64) ([]int64, error) {
	query := "SELECT id FROM " + table + mysqlDialect.byID + " WHERE id IN (" + idList(ids) + ")"
	committed, err := selectIDs(ctx, conn, query)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadUncommitted})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // the locks end with it
	existing, err := selectIDs(ctx, tx, query)
	if err != nil {
		return nil, err
	}
	free, err := selectIDs(ctx, tx, query+" FOR UPDATE SKIP LOCKED")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id int64) bool {
		return slices.Contains(free, id) || !slices.Contains(committed, id) && !slices.Contains(existing, id)
	}), nil
}

// refused finds the locked rows by halving, with a statement that fails at once when it meets one of them.
func refused(ctx context.Context, conn *sql.Conn, ids []int64) ([]int64, error) {
	err := tryLock(ctx, conn, ids)
	if e, ok := errors.AsType[*row.Error](classify("lock", err)); !ok {
		return nil, err
	} else if e.Class != row.ClassLocked {
		return nil, err
	}
	if len(ids) == 1 {
		return ids, nil
	}
	first, err := refused(ctx, conn, ids[:len(ids)/2])
	if err != nil {
		return nil, err
	}
	second, err := refused(ctx, conn, ids[len(ids)/2:])
	return slices.Concat(first, second), err
}

func tryLock(ctx context.Context, conn *sql.Conn, ids []int64) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // the locks end with it
	_, err = selectIDs(ctx, tx, "SELECT id FROM "+table+mysqlDialect.byID+" WHERE id IN ("+idList(ids)+") FOR UPDATE NOWAIT")
	return err
}

func selectIDs(ctx context.Context, q queryer, query string, args ...any) ([]int64, error) {
	var ids []int64
	err := scan(ctx, q, query, args, func(r *struct {
		ID int64 `db:"id"`
	}) error {
		ids = append(ids, r.ID)
		return nil
	})
	return ids, err
}

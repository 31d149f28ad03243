package sqlstore

import (
	"context"
	"errors"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// InTransaction implements [store.Saver].
func (s *Store) InTransaction(ctx context.Context, tx store.Tx) (bool, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	inside, err := s.dialect.inTransaction(ctx, tx)
	err = notSent("look whether a transaction is open", err)
	if e, ok := errors.AsType[*row.Error](err); ok && e.Hint == "" {
		e.Hint = "a *sql.Tx is taken without this question"
	}
	return inside, err
}

// mysqlInTransaction sets a savepoint and releases it. Outside of a transaction none lasts longer than its statement.
func mysqlInTransaction(ctx context.Context, tx execer) (bool, error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT delaytask_looks_for_a_transaction"); err != nil {
		return false, err
	}
	const noSuchSavepoint = 1305
	_, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT delaytask_looks_for_a_transaction")
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == noSuchSavepoint {
		return false, nil
	}
	return err == nil, err
}

// sqliteInTransaction makes use of a setting that SQLite refuses to take inside of a transaction, and that means
// nothing for the database of temporary tables. A savepoint would begin a transaction.
func sqliteInTransaction(ctx context.Context, tx execer) (bool, error) {
	_, err := tx.ExecContext(ctx, "PRAGMA temp.synchronous = FULL")
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_ERROR {
		return true, nil
	}
	return false, err
}

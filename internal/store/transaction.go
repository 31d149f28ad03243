package store

import (
	"context"
	"database/sql"

	"github.com/delaytask/delaytask"
)

// Methods that a transaction may have. None is required: GORM, bun, sqlc and ent hand out interfaces that show less.
type (
	ender interface { // a transaction
		Commit() error
		Rollback() error
	}
	pool        interface{ Stats() sql.DBStats }
	wrappedPool interface{ GetDBConn() (*sql.DB, error) } // GORM's, and with an end GORM's transaction
)

// InTransaction returns [delaytask.ErrNoTransaction] for what commits each statement by itself, as a pool does. The
// store is asked only if the type does not show it.
func InTransaction(ctx context.Context, s Asker, tx Tx) error {
	_, ends := tx.(ender)
	_, pools := tx.(pool)
	_, wraps := tx.(wrappedPool)
	switch {
	case ends && !pools:
		return nil
	case !ends && (pools || wraps):
		return delaytask.ErrNoTransaction
	}
	inside, err := s.InTransaction(ctx, tx)
	if err == nil && !inside {
		err = delaytask.ErrNoTransaction
	}
	return err
}

// Asker is a store that can tell whether tx is inside of a transaction.
type Asker interface {
	InTransaction(ctx context.Context, tx Tx) (bool, error)
}

package engine

import (
	"context"
	"database/sql"

	"github.com/delaytask/delaytask/processor"
)

// What types tell by their methods. None is demanded: GORM, bun, sqlc and ent hand out interfaces that show less.
type (
	ender interface { // a transaction
		Commit() error
		Rollback() error
	}
	pool        interface{ Stats() sql.DBStats }
	wrappedPool interface{ GetDBConn() (*sql.DB, error) } // GORM's, and with an end GORM's transaction
)

// inTransaction returns [processor.ErrNoTransaction] for what commits each statement by itself, as a pool does. Only
// the database knows what the type does not tell.
func inTransaction(ctx context.Context, store Store, tx Tx) error {
	_, ends := tx.(ender)
	_, pools := tx.(pool)
	_, wraps := tx.(wrappedPool)
	switch {
	case ends && !pools:
		return nil
	case !ends && (pools || wraps):
		return processor.ErrNoTransaction
	}
	inside, err := store.InTransaction(ctx, tx)
	if err == nil && !inside {
		err = processor.ErrNoTransaction
	}
	return err
}

package migrations

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/store"
)

func TestLockMakesTheSecondWaitForTheFirst(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _, err := store.Connect(t.Context(), d.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		first, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		second, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()

		var mine, theirs sessionLocker
		if err := mine.SessionLock(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := mine.SessionUnlock(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := theirs.SessionLock(t.Context(), second); err != nil {
			t.Fatalf("the lock was given back: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := mine.SessionLock(ctx, first); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("locked while another holds the lock: %v", err)
		}
	})
}

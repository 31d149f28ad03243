package migrations

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/store"
)

func TestLeaseIsOnesAtATimeAndEndsByItself(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _, err := store.Connect(t.Context(), d.Spread().DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		other, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()

		var mine, theirs lease
		if err := mine.take(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := theirs.take(ctx, other); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("taken while another holds it: %v", err)
		}
		if err := theirs.giveBack(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if held := count(t, db, "SELECT COUNT(*) FROM delay_task_goose_lock WHERE ends > UTC_TIMESTAMP(6)"); held != 1 {
			t.Fatal("one who has not got the lease gave it back")
		}
		if err := mine.giveBack(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		if err := theirs.take(t.Context(), other); err != nil {
			t.Fatalf("it was given back: %v", err)
		}
		// The holder dies, and its minute passes.
		if _, err := db.ExecContext(t.Context(), "UPDATE delay_task_goose_lock SET ends = UTC_TIMESTAMP(6)"); err != nil {
			t.Fatal(err)
		}
		if err := mine.take(t.Context(), conn); err != nil {
			t.Fatalf("it has ended: %v", err)
		}
	})
}

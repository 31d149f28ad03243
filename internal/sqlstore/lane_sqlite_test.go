package sqlstore

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

func TestWritesToASQLiteFileTakeTurnsInTheOrderInWhichTheyCame(t *testing.T) {
	path := "sqlite:" + filepath.Join(t.TempDir(), "turns.db")
	synctest.Test(t, func(t *testing.T) {
		db, kind, err := Connect(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s := New(db, kind)
		begin, end := make(chan struct{}), make(chan struct{})
		go func() {
			_ = s.keep.do(t.Context(), "test", func(context.Context, *sql.Conn) error {
				close(begin)
				<-end
				return nil
			})
		}()
		<-begin
		var came []int
		lanes := []*lane{s.save, s.save, s.save, s.save, s.claim, s.settle, s.saveKeyed, s.renew}
		for i, l := range lanes {
			go func() {
				_ = l.do(t.Context(), "test", func(context.Context, *sql.Conn) error {
					came = append(came, i) // by itself, as the race detector sees
					return nil
				})
			}()
			synctest.Wait()
		}
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err = s.probe.do(late, "test", func(context.Context, *sql.Conn) error { return nil })
		if row.ClassOf(err) != row.ClassNotApplied {
			t.Errorf("a write that waits too long for others ends with %v, want not applied", err)
		}
		close(end)
		synctest.Wait()
		// The three that queue in their lane let one of each other lane go before.
		if want := []int{0, 4, 5, 6, 7, 1, 2, 3}; !slices.Equal(came, want) {
			t.Errorf("they came in the order %v, want %v", came, want)
		}
	})
}

func TestReadHoldsUpNoWriteToASQLiteFile(t *testing.T) {
	db, kind, err := Connect(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "beside.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustExec(t, db, "CREATE TABLE written (id INTEGER)")
	mustExec(t, db, "INSERT INTO written VALUES (1), (2)")
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM written")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	if err := New(db, kind).save.do(t.Context(), "test", run("INSERT INTO written VALUES (3)")); err != nil {
		t.Errorf("a write beside a read that goes on: %v", err)
	}
}

package sqlstore

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// The file loses its name while a row is written, and has it again afterwards.
func TestAFileThatHasLostItsNameIsRefusedForGood(t *testing.T) {
	d := dbtest.New(t, dbtest.SQLite)
	db, kind := migrated(t, d)
	s := New(db, kind)
	defer s.Close(t.Context())
	file := strings.TrimPrefix(d.DSN, "sqlite:")
	saveOne(t, s, 1)
	ctx := store.WithDeparture(t.Context(), store.Departure{Waits: func() {}, Sends: func() error {
		return os.Rename(file, file+".old")
	}})
	rows := []row.Row{{ID: 2, Tag: "a", Expected: plannedTime, Due: plannedTime}}
	err := s.Insert(ctx, nil, rows)
	if !errors.Is(err, delaytask.ErrFileReplaced) || row.ClassOf(err) != row.ClassUnknown {
		t.Errorf("a save amid which the file loses its name: %v", err)
	}
	must(t, os.Rename(file+".old", file))
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	_, updated := s.Update(t.Context(), tx, []row.Change{{ID: 1}})
	for what, err := range map[string]error{
		"a save in a transaction": s.Insert(t.Context(), tx, rows), "a change in one": updated,
		"a read in one": two(s.Get(t.Context(), tx, []int64{1})),
	} {
		if !errors.Is(err, delaytask.ErrFileReplaced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, tx.Rollback())
	if err := s.Insert(t.Context(), nil, rows); !errors.Is(err, delaytask.ErrFileReplaced) {
		t.Errorf("a save: %v", err)
	}
}

package store_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Quotes are what grows most in a statement, and a caller's driver may take packets to be larger than the server does.
func TestCheckRefusesABodyLimitThatNoPacketHolds(t *testing.T) {
	const besideBody = 64 << 10
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		callers, err := sqlx.Open("mysql", d.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer callers.Close()
		var packet int
		if err := own.GetContext(t.Context(), &packet, "SELECT @@max_allowed_packet"); err != nil {
			t.Fatal(err)
		}
		longest := packet - besideBody
		for id, pool := range []*sqlx.DB{own, callers} {
			s := store.New(pool, store.MySQL)
			defer s.Close(t.Context())
			refusedFor(t, s, longest+1, fmt.Sprint(longest+1), fmt.Sprint("is ", packet), fmt.Sprint("at least ", packet+1))
			if _, err := s.Check(t.Context(), longest); err != nil {
				t.Error(err)
			}
			if packet > 16<<20 {
				continue // it would take long
			}
			saved := task(int64(id+1), "key")
			saved.Tag, saved.Body = fmt.Sprint("tag", id), bytes.Repeat([]byte{'"'}, longest)
			if err := s.Insert(t.Context(), nil, []row.Row{saved}); err != nil {
				t.Fatalf("save a body of %d bytes: %v", longest, err)
			}
			rows, _, err := s.Get(t.Context(), nil, []int64{saved.ID})
			if err != nil || len(rows) != 1 || !bytes.Equal(rows[0].Body, saved.Body) {
				t.Errorf("read %d tasks: %v", len(rows), err)
			}
		}
	})
}

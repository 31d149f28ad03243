package api

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestTransactionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s, d := embedded(t)
	finished := begin(t, d)
	gone, err := servertest.SQL(t, d.DSN).Conn(t.Context())
	servertest.OK(t, err)
	servertest.OK(t, errors.Join(finished.Rollback(), gone.Close()))
	file, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(d.DSN, "sqlite:")+"?mode=ro")
	servertest.OK(t, err)
	defer file.Close()
	readOnly, err := file.BeginTx(t.Context(), nil)
	servertest.OK(t, err)
	for name, c := range map[string]struct {
		tx   delaytask.Tx
		want error // nil: any
	}{
		"nil":                     {nil, delaytask.ErrNilTx},
		"a nil pointer":           {(*sql.Tx)(nil), delaytask.ErrNilTx},
		"a finished transaction":  {finished, nil},
		"a closed connection":     {gone, nil},
		"one of another database": {begin(t, dbtest.New(t, dbtest.SQLite)), nil},
		"one that may only read":  {readOnly, nil},
	} {
		_, save := s.SaveDelayTaskTx(t.Context(), c.tx, "t", nil, 0)
		_, cancel := s.CancelTx(t.Context(), c.tx, delaytask.ID(1))
		_, reschedule := s.RescheduleTx(t.Context(), c.tx, delaytask.ID(1), 0)
		for call, err := range map[string]error{"save": save, "cancel": cancel, "reschedule": reschedule} {
			if err == nil {
				t.Errorf("%s in %s is accepted", call, name)
			} else if c.want != nil {
				wantError(t, call+" in "+name, err, c.want)
			}
		}
	}
	if n := total(t, s); n != 0 {
		t.Errorf("%d tasks are stored, want none", n)
	}

	tx := new(sql.Tx)
	wantError(t, "no context", processor.CompleteTx(nil, tx), delaytask.ErrNilContext) //nolint:staticcheck // the case
	wantError(t, "no transaction", processor.CompleteTx(t.Context(), nil), delaytask.ErrNilTx)
	wantError(t, "outside of any processor", processor.CompleteTx(t.Context(), tx), processor.ErrNoLease)
}

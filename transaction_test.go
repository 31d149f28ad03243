package delaytask

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

func TestTransactionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	f := open(t)
	finished := begin(t, f.pool(t))
	if err := finished.Rollback(); err != nil {
		t.Fatal(err)
	}
	gone, err := f.pool(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	readOnly := poolOf(t, "file:"+f.file+"?mode=ro")
	for name, c := range map[string]struct {
		tx   Tx
		want error // nil: any
	}{
		"nil":                     {nil, ErrNilTx},
		"a nil pointer":           {(*sql.Tx)(nil), ErrNilTx},
		"a finished transaction":  {finished, nil},
		"a closed connection":     {gone, nil},
		"one of another database": {begin(t, pool(t, filepath.Join(t.TempDir(), "other.db"))), nil},
		"one that may only read":  {begin(t, readOnly), nil},
	} {
		_, save := f.SaveDelayTaskTx(t.Context(), c.tx, "t", nil, 0)
		_, cancel := f.CancelTx(t.Context(), c.tx, ID(1))
		_, reschedule := f.RescheduleTx(t.Context(), c.tx, ID(1), 0)
		for call, err := range map[string]error{"save": save, "cancel": cancel, "reschedule": reschedule} {
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s in %s: got %v, want %v", call, name, err, c.want)
			}
		}
	}
	if n := f.count(t); n != 0 {
		t.Errorf("%d tasks are stored, want none", n)
	}
}

func TestTransactionDecidesWhetherTheTaskExists(t *testing.T) {
	t.Parallel()
	f := open(t)
	db := f.pool(t)
	in := func(end func(*sql.Tx) error) (id int64) {
		t.Helper()
		tx := begin(t, db)
		id, err := f.SaveDelayTaskTx(t.Context(), tx, "t", "body", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		return id
	}
	rolledBack := in((*sql.Tx).Rollback)
	committed := in((*sql.Tx).Commit)
	if _, err := f.Get(t.Context(), ID(rolledBack)); !errors.Is(err, ErrNotFound) {
		t.Errorf("after a rollback: %v, want %v", err, ErrNotFound)
	}
	if task := f.get(t, committed); task.Status != Pending {
		t.Errorf("after a commit: %+v", task)
	}

	tx := begin(t, db)
	if met, err := f.RescheduleTx(t.Context(), tx, ID(committed), 2*time.Hour); met != Pending || err != nil {
		t.Fatalf("reschedule: %v, %v", met, err)
	}
	if met, err := f.CancelTx(t.Context(), tx, ID(committed)); met != Pending || err != nil {
		t.Fatalf("cancel: %v, %v", met, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if task := f.get(t, committed); task.Status != Pending || task.Delay != time.Hour {
		t.Errorf("after the rollback of a cancel: %+v", task)
	}
}

func TestLateCompletionIsRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	db := f.pool(t)
	result := make(chan error, 1)
	f.serve(t, "t", func(ctx context.Context, task *processor.Task) error {
		// Somebody else ends the task, past this scheduler.
		const cancel = "UPDATE delay_task_message SET status = 4, version = version + 1 WHERE id = ?"
		if _, err := db.ExecContext(ctx, cancel, task.ID); err != nil {
			result <- err
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			result <- err
			return err
		}
		defer tx.Rollback()
		err = CompleteTx(ctx, tx)
		result <- err
		return err
	})
	id, err := f.SaveDelayTask(t.Context(), "t", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, ErrLeaseLost) {
		t.Errorf("got %v, want %v", err, ErrLeaseLost)
	}
	if task := f.get(t, id); task.Status != Cancelled {
		t.Errorf("the task is %s", task.Status)
	}
}

func TestCompleteTxRefusesMistakes(t *testing.T) {
	t.Parallel()
	tx := new(sql.Tx)
	for name, c := range map[string]struct{ err, want error }{
		"no context":               {CompleteTx(nil, tx), ErrNilContext}, //nolint:staticcheck // a nil context is the case
		"no transaction":           {CompleteTx(t.Context(), nil), ErrNilTx},
		"outside of any processor": {CompleteTx(t.Context(), tx), processor.ErrNoLease},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
}

package delaytask

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

func TestNilAndEndedContextsChangeNothing(t *testing.T) {
	t.Parallel()
	f := open(t)
	tx := begin(t, pool(t, filepath.Join(t.TempDir(), "other.db")))
	cause := errors.New("the caller has left")
	ended, end := context.WithCancelCause(t.Context())
	end(cause)
	for want, ctx := range map[error]context.Context{ErrNilContext: nil, cause: ended} {
		for name, call := range map[string]func() error{
			"SaveDelayTask":   func() error { _, err := f.SaveDelayTask(ctx, "t", nil, 0); return err },
			"SaveDelayTaskTx": func() error { _, err := f.SaveDelayTaskTx(ctx, tx, "t", nil, 0); return err },
			"SaveDelayTasks":  func() error { _, err := f.SaveDelayTasks(ctx, []Item{{Tag: "t"}}); return err },
			"Cancel":          func() error { _, err := f.Cancel(ctx, ID(1)); return err },
			"CancelTx":        func() error { _, err := f.CancelTx(ctx, tx, ID(1)); return err },
			"Reschedule":      func() error { _, err := f.Reschedule(ctx, ID(1), 0); return err },
			"RescheduleTx":    func() error { _, err := f.RescheduleTx(ctx, tx, ID(1), 0); return err },
			"Retry":           func() error { return f.Retry(ctx, ID(1)) },
			"Pause":           func() error { return f.Pause(ctx, "t") },
			"Resume":          func() error { return f.Resume(ctx, "t") },
			"Get":             func() error { _, err := f.Get(ctx, ID(1)); return err },
			"List":            func() error { _, err := f.List(ctx, Filter{}); return err },
			"CancelAll":       func() error { _, err := f.CancelAll(ctx, Bulk{}); return err },
			"RetryAll":        func() error { _, err := f.RetryAll(ctx, Bulk{}); return err },
			"Explain":         func() error { _, err := f.Explain(ctx, ID(1)); return err },
			"Stats":           func() error { _, err := f.Stats(ctx); return err },
			"Nodes":           func() error { _, err := f.Nodes(ctx); return err },
			"Ready":           func() error { return f.Ready(ctx) },
			"Start":           func() error { return f.Start(ctx) },
		} {
			if err := call(); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", name, err, want)
			}
		}
	}
	if err := f.Stop(nil); !errors.Is(err, ErrNilContext) { //nolint:staticcheck // a nil context is the case
		t.Errorf("Stop: got %v, want %v", err, ErrNilContext)
	}
	if n := f.count(t); n != 0 {
		t.Errorf("%d tasks are stored, want none", n)
	}
}

func TestSaveThatIsCutOffSaysThatItsOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	f := open(t)
	blocker := begin(t, f.pool(t)) // holds the file's only write lock
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := f.SaveDelayTask(ctx, "t", "body", time.Hour)
	unknown, ok := errors.AsType[*OutcomeUnknownError](err)
	if !ok || !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want an OutcomeUnknownError", err)
	}
	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}
	id, err := f.SaveDelayTask(t.Context(), "t", "body", time.Hour, WithID(unknown.ID))
	if err != nil || id != unknown.ID || f.count(t) != 1 {
		t.Errorf("saved again: %d, %v, and %d tasks; want %d and 1", id, err, f.count(t), unknown.ID)
	}
}

func TestTransactionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	f := open(t)
	finished := begin(t, f.pool(t))
	if err := finished.Rollback(); err != nil {
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

func TestBatchesOfEverySize(t *testing.T) {
	t.Parallel()
	f := inMemory(t)
	for _, n := range []int{0, 1, maxItems, maxItems + 1} {
		before := f.total(t)
		items := make([]Item, n)
		for i := range items {
			items[i] = Item{Tag: "t", Delay: time.Hour}
		}
		results, err := f.SaveDelayTasks(t.Context(), items)
		if n > maxItems {
			if !errors.Is(err, ErrBatchTooLarge) || f.total(t) != before {
				t.Errorf("%d tasks: %v", n, err)
			}
			continue
		}
		ids := map[int64]bool{}
		for _, r := range results {
			ids[r.ID] = r.Err == nil
		}
		if err != nil || len(ids) != n || ids[0] || f.total(t) != before+n {
			t.Errorf("%d tasks: %v, %d ids, %d stored", n, err, len(ids), f.total(t)-before)
		}
	}
}

func (f fixture) total(t *testing.T) (n int) {
	t.Helper()
	stats, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stats {
		for _, count := range s.Counts {
			n += int(count)
		}
	}
	return n
}

func TestDuplicateInABatchIsItsOwn(t *testing.T) {
	t.Parallel()
	f := open(t)
	key := []Option{WithKey("k")}
	results, err := f.SaveDelayTasks(t.Context(), []Item{
		{Tag: "t", Body: "first", Delay: time.Hour, Options: key}, {Tag: "t", Delay: time.Hour},
		{Tag: "t", Body: "second", Delay: time.Hour, Options: key}, {Tag: "u", Delay: time.Hour, Options: key},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, nil, ErrDuplicate, nil} {
		if !errors.Is(results[i].Err, want) {
			t.Errorf("item %d: %v, want %v", i, results[i].Err, want)
		}
	}
	if results[2].ID != results[0].ID || string(f.get(t, results[0].ID).Body) != "first" {
		t.Errorf("the duplicate names task %d, want %d with its body unchanged", results[2].ID, results[0].ID)
	}
}

func TestKeyIsFreeAgainWhenItsTaskIsFinished(t *testing.T) {
	t.Parallel()
	f := open(t)
	first, err := f.SaveDelayTask(t.Context(), "t", "1", time.Hour, WithKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := f.SaveDelayTask(t.Context(), "t", "2", time.Hour, WithKey("k")); id != first || !errors.Is(err, ErrDuplicate) {
		t.Errorf("while unfinished: %d, %v, want %d", id, err, first)
	}
	if met, err := f.Cancel(t.Context(), Key("t", "k")); met != Pending || err != nil {
		t.Fatalf("cancel by key: %v, %v", met, err)
	}
	if id, err := f.SaveDelayTask(t.Context(), "t", "3", time.Hour, WithKey("k")); id == first || err != nil {
		t.Errorf("when finished: %d, %v, want a new task", id, err)
	}
}

func TestOneKeySavedByManyIsOneTask(t *testing.T) {
	t.Parallel()
	f := open(t)
	var mu sync.Mutex
	var stored, met int
	ids := map[int64]bool{}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			id, err := f.SaveDelayTask(t.Context(), "t", i, time.Hour, WithKey("k"))
			mu.Lock()
			defer mu.Unlock()
			ids[id] = true
			switch {
			case err == nil:
				stored++
			case errors.Is(err, ErrDuplicate):
				met++
			}
		})
	}
	wg.Wait()
	if stored != 1 || met != 99 || len(ids) != 1 {
		t.Errorf("%d stored, %d duplicates, %d ids", stored, met, len(ids))
	}
}

func TestWhatAProcessorReturnsIsCleaned(t *testing.T) {
	t.Parallel()
	failed := make(chan struct{}, 3)
	f := open(t, func(c *Config) {
		c.MaxAttempts = 1
		c.OnFailed = func(context.Context, *processor.Task, error) { failed <- struct{}{} }
	})
	var typedNil *customError
	results := map[string]error{
		"long":    errors.New(strings.Repeat("long ", 2<<20)),
		"garbage": errors.New("\xff\xfe not text"),
		"nil":     typedNil,
	}
	for name, err := range results {
		f.serve(t, name, func(context.Context, *processor.Task) error { return err })
	}
	for name := range results {
		if _, err := f.SaveDelayTask(t.Context(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range results {
		<-failed
	}
	page, err := f.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range page.Tasks {
		valid := strings.ToValidUTF8(task.ErrorStack, "") == task.ErrorStack
		if task.Status != Failed || len(task.ErrorStack) == 0 || len(task.ErrorStack) > 8<<10 || !valid || len(task.Errors) != 1 {
			t.Errorf("%s: %s with %d bytes of error, valid %v, %d attempts",
				task.Tag, task.Status, len(task.ErrorStack), valid, len(task.Errors))
		}
	}
}

type customError struct{}

func (e *customError) Error() string { return fmt.Sprintf("%p", e) }

func TestEmptyBodyIsDeliveredEmpty(t *testing.T) {
	t.Parallel()
	f := open(t)
	bodies := make(chan []byte, 1)
	f.serve(t, "t", func(_ context.Context, task *processor.Task) error {
		bodies <- task.Body
		return nil
	})
	if _, err := f.SaveDelayTask(t.Context(), "t", nil, 0); err != nil {
		t.Fatal(err)
	}
	if body := <-bodies; len(body) != 0 {
		t.Errorf("got %q", body)
	}
}

func TestTagWithoutAProcessorIsNeverClaimedHere(t *testing.T) {
	t.Parallel()
	f := open(t)
	done := make(chan struct{})
	f.serve(t, "served", func(context.Context, *processor.Task) error {
		close(done)
		return nil
	})
	orphan, err := f.SaveDelayTask(t.Context(), "orphan", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.SaveDelayTask(t.Context(), "served", nil, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	if task := f.get(t, orphan); task.Status != Pending || task.Attempt != 0 {
		t.Errorf("the orphan is %s after attempt %d", task.Status, task.Attempt)
	}
	if why, err := f.Explain(t.Context(), ID(orphan)); err != nil || why.Reason != ReasonUnserved {
		t.Errorf("explained as %+v, %v", why, err)
	}
}

func TestCancelMeetsATaskAnywhere(t *testing.T) {
	t.Parallel()
	f := open(t)
	running, ended := make(chan int64), make(chan error)
	f.serve(t, "slow", func(ctx context.Context, task *processor.Task) error {
		running <- task.ID
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	})
	pending, err := f.SaveDelayTask(t.Context(), "slow", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if met, err := f.Cancel(t.Context(), ID(pending)); met != Pending || err != nil {
		t.Errorf("pending: %v, %v", met, err)
	}
	version := f.get(t, pending).Version
	if _, err := f.Cancel(t.Context(), ID(pending)); !errors.Is(err, ErrFinished) {
		t.Errorf("a second time: %v, want %v", err, ErrFinished)
	}
	if now := f.get(t, pending); now.Status != Cancelled || now.Version != version {
		t.Errorf("a second cancel changed %+v", now)
	}

	if _, err := f.SaveDelayTask(t.Context(), "slow", nil, 0); err != nil {
		t.Fatal(err)
	}
	id := <-running
	if _, err := f.Cancel(t.Context(), ID(id), OnlyPending()); !errors.Is(err, ErrNotPending) {
		t.Errorf("executing, only if pending: %v, want %v", err, ErrNotPending)
	}
	if _, err := f.Reschedule(t.Context(), ID(id), time.Hour); !errors.Is(err, ErrNotPending) {
		t.Errorf("reschedule while executing: %v, want %v", err, ErrNotPending)
	}
	if met, err := f.Cancel(t.Context(), ID(id)); met != Executing || err != nil {
		t.Errorf("executing: %v, %v", met, err)
	}
	if cause := <-ended; !errors.Is(cause, processor.ErrCancelled) {
		t.Errorf("the processor's context ended with %v", cause)
	}
	if task := f.get(t, id); task.Status != Cancelled {
		t.Errorf("the result of the cancelled attempt made it %s", task.Status)
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

package delaytask

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
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
			"SetBody":         func() error { _, err := f.SetBody(ctx, ID(1), nil); return err },
			"Retry":           func() error { return f.Retry(ctx, ID(1)) },
			"Pause":           func() error { return f.Pause(ctx, "t") },
			"Resume":          func() error { return f.Resume(ctx, "t") },
			"Get":             func() error { _, err := f.Get(ctx, ID(1)); return err },
			"List":            func() error { _, err := f.List(ctx, Filter{}); return err },
			"CancelAll":       func() error { _, err := f.CancelAll(ctx, Bulk{}); return err },
			"RetryAll":        func() error { _, err := f.RetryAll(ctx, Bulk{}); return err },
			"Explain":         func() error { _, err := f.Explain(ctx, ID(1)); return err },
			"Stats":           func() error { _, err := f.Stats(ctx); return err },
			"Tags":            func() error { _, err := f.Tags(ctx); return err },
			"Lateness":        func() error { _, err := f.Lateness(ctx, "t", time.Hour); return err },
			"Nodes":           func() error { _, err := f.Nodes(ctx); return err },
			"Ready":           func() error { return f.Ready(ctx) },
			"Start":           func() error { return f.Start(ctx) },
			"Finish":          func() error { return f.Finish(ctx, Token{ID: 1, Version: 1}) },
			"Fail":            func() error { return f.Fail(ctx, Token{ID: 1, Version: 1}, cause) },
			"Release":         func() error { return f.Release(ctx, Token{ID: 1, Version: 1}) },
			"Touch":           func() error { return f.Touch(ctx, Token{ID: 1, Version: 1}, time.Second) },
			"FinishAll":       func() error { _, err := f.FinishAll(ctx, []Token{{ID: 1, Version: 1}}); return err },
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
	var unknown *OutcomeUnknownError
	var err error
	ok := false
	for tries := 0; !ok && tries < 10; tries++ { // the context of a save that was not sent in time ends like any other
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = f.SaveDelayTask(ctx, "t", "body", time.Hour)
		cancel()
		unknown, ok = errors.AsType[*OutcomeUnknownError](err)
	}
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

package delaytask_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// explained fails the test unless the task is explained by the reason, in a sentence that holds the text.
func explained(t *testing.T, s *delaytask.Scheduler, id int64, want delaytask.Reason, text string) {
	t.Helper()
	got, err := s.Explain(t.Context(), delaytask.ID(id))
	if err != nil || got.Reason != want || !strings.Contains(got.Text, text) || got.Task.ID != id {
		t.Errorf("got %s %q, %v; want %s with %q", got.Reason, got.Text, err, want, text)
	}
}

func TestExplainNamesTheFirstHurdle(t *testing.T) {
	t.Parallel()
	s := delaytasktest.New(t, delaytasktest.StartAt(noon))
	var leased int64
	err := s.Register("t", processor.Func(func(_ context.Context, task *processor.Task) error {
		leased = task.ID
		explained(t, s.Scheduler, task.ID, delaytask.ReasonLeased, "until 2026-05-04T12:01:15.000Z")
		if task.Attempt == 1 {
			return errors.New("no answer")
		}
		return processor.Permanent(errors.New("no such account"))
	}))
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.SaveDelayTask(t.Context(), "t", nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.Advance(0)
	explained(t, s.Scheduler, id, delaytask.ReasonNotDue, "It is due at 2026-05-04T12:01:00.000Z")

	if err := s.Pause(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	explained(t, s.Scheduler, id, delaytask.ReasonNotDue, "The tag t is paused.")
	if runs := s.Advance(time.Minute); len(runs) != 0 {
		t.Errorf("a paused tag ran: %v", runs)
	}
	explained(t, s.Scheduler, id, delaytask.ReasonPaused, "paused")
	if err := s.Resume(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	explained(t, s.Scheduler, id, delaytask.ReasonWaiting, "due since 2026-05-04T12:01:00.000Z")

	s.Advance(0)
	if leased != id {
		t.Fatal("the task did not run")
	}
	explained(t, s.Scheduler, id, delaytask.ReasonRetry, "Attempt 1 failed (no answer)")
}

func TestExplainSaysWhatBecameOfATask(t *testing.T) {
	t.Parallel()
	s := delaytasktest.New(t, delaytasktest.StartAt(noon))
	for tag, err := range map[string]error{"ok": nil, "bad": processor.Permanent(errors.New("no such account"))} {
		if err := s.Register(tag, processor.Func(func(context.Context, *processor.Task) error { return err })); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]int64{}
	for _, tag := range []string{"ok", "bad", "orphan", "cancelled"} {
		id, err := s.SaveDelayTask(t.Context(), tag, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ids[tag] = id
	}
	if _, err := s.Cancel(t.Context(), delaytask.ID(ids["cancelled"])); err != nil {
		t.Fatal(err)
	}
	s.Advance(0)
	explained(t, s.Scheduler, ids["ok"], delaytask.ReasonFinished, "completed at 2026-05-04T12:00:00.000Z, in attempt 1")
	explained(t, s.Scheduler, ids["bad"], delaytask.ReasonFinished, "no such account")
	explained(t, s.Scheduler, ids["cancelled"], delaytask.ReasonFinished, "cancelled at 2026-05-04T12:00:00.000Z")
	explained(t, s.Scheduler, ids["orphan"], delaytask.ReasonUnserved, "No live node serves the tag orphan.")
}

func TestExplainSaysThatAnotherTransactionHoldsTheRow(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, db := onDatabase(t, d)
		if err := s.Pause(t.Context(), "t"); err != nil { // so that it is not claimed before it is locked
			t.Fatal(err)
		}
		nothing := processor.Func(func(context.Context, *processor.Task) error { return nil })
		if err := errors.Join(s.Register("t", nothing), s.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		awaitServed(t, s, "t")
		id, err := s.SaveDelayTask(t.Context(), "t", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "SELECT id FROM delay_task_message WHERE id = ? FOR UPDATE", id); err != nil {
			t.Fatal(err)
		}
		explained(t, s, id, delaytask.ReasonPaused, "The tag t is paused. Its row is locked by another transaction.")
		if err := s.Resume(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		explained(t, s, id, delaytask.ReasonLocked, "Its row is locked by another transaction.")
	})
}

func TestExplainSaysThatALeaseIsOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, db := onDatabase(t, d) // not started, so it rescues nothing
		id, err := s.SaveDelayTask(t.Context(), "t", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		const crashed = "UPDATE delay_task_message SET status = 3, attempt = 1, executor = 'web-1:17:a:1', " +
			"due_time = '2026-01-02 03:04:05.000000' WHERE id = ?"
		if _, err := db.ExecContext(t.Context(), crashed, id); err != nil {
			t.Fatal(err)
		}
		explained(t, s, id, delaytask.ReasonLeaseOver, "The lease of web-1:17:a:1 ended at 2026-01-02T03:04:05.000Z")
	})
}

// onDatabase returns a scheduler and, beside it, a pool as an operator has one.
func onDatabase(t *testing.T, d dbtest.Database) (*delaytask.Scheduler, *sql.DB) {
	t.Helper()
	s, err := delaytask.Open(t.Context(), d.DSN, delaytask.Config{Migrate: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	driver, dsn := "mysql", d.DSN
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return s, db
}

// awaitServed waits for the node's announcement, which it makes in the background.
func awaitServed(t *testing.T, s *delaytask.Scheduler, tag string) {
	t.Helper()
	served := func(n delaytask.Node) bool { return slices.Contains(n.Tags, tag) }
	for {
		nodes, err := s.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(nodes, served) {
			return
		}
	}
}

func TestStatsTellOfEveryTag(t *testing.T) {
	t.Parallel()
	s := delaytasktest.New(t, delaytasktest.StartAt(noon))
	if err := s.Register("t", processor.Func(func(context.Context, *processor.Task) error { return nil })); err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{0, 0, time.Minute, time.Hour} {
		if _, err := s.SaveDelayTask(t.Context(), "t", nil, delay); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Pause(t.Context(), "held"); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Minute)
	stats, err := s.Stats(t.Context())
	if err != nil || len(stats) != 2 {
		t.Fatalf("got %+v, %v", stats, err)
	}
	held, tag := stats[0], stats[1]
	if held.Tag != "held" || !held.Paused || held.Served || len(held.Counts) != 0 {
		t.Errorf("the paused tag: %+v", held)
	}
	if tag.Counts[delaytask.Completed] != 3 || tag.Counts[delaytask.Pending] != 1 || !tag.Served || tag.Paused ||
		!tag.OldestPending.Equal(noon.Add(time.Hour)) || tag.Lateness.Samples != 3 || tag.Lateness.Max != 0 {
		t.Errorf("the served tag: %+v", tag)
	}
}

package delaytask_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
)

func TestSpansOfSavesThatFail(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	f.save(t, "mail", time.Hour, delaytask.WithKey("7"))
	for _, tt := range []struct {
		name   string
		err    error
		span   string
		save   func() error
		status codes.Code
	}{
		{"a tag that there cannot be", delaytask.ErrInvalidTag, "send", func() error {
			_, err := f.SaveDelayTask(f.ctx, "not a tag", nil, 0)
			return err
		}, codes.Error},
		{"a negative delay", delaytask.ErrInvalidDelay, "send mail", func() error {
			_, err := f.SaveDelayTask(f.ctx, "mail", nil, -1)
			return err
		}, codes.Error},
		{"one of many", delaytask.ErrInvalidDelay, "send mail", func() error {
			_, err := f.SaveDelayTasks(f.ctx, []delaytask.Item{{Tag: "mail"}, {Tag: "mail", Delay: -1}})
			return err
		}, codes.Error},
		{"a key that is taken", delaytask.ErrDuplicate, "send mail", func() error {
			_, err := f.SaveDelayTask(f.ctx, "mail", nil, 0, delaytask.WithKey("7"))
			return err
		}, codes.Unset},
	} {
		before := len(spans(f.SpanRecorder, tt.span))
		if err := tt.save(); !errors.Is(err, tt.err) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.err)
		}
		named := spans(f.SpanRecorder, tt.span)
		if len(named) != before+1 {
			t.Fatalf("%s: %d new spans %q, want 1", tt.name, len(named)-before, tt.span)
		}
		last := named[before]
		if last.Status.Code != tt.status {
			t.Errorf("%s: status %v, want %v", tt.name, last.Status, tt.status)
		}
		met := attributeOf(last, "messaging.delaytask.duplicate") == true
		if met != errors.Is(tt.err, delaytask.ErrDuplicate) {
			t.Errorf("%s: duplicate %v", tt.name, met)
		}
	}
}

func TestBulkSaveHasOneSpanWhoseContextGoesIntoEveryTask(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	own := delaytask.WithHeader("color", "red")
	same := []delaytask.Item{{Tag: "a", Delay: time.Hour}, {Tag: "a", Delay: time.Hour, Options: []delaytask.Option{own}}}
	mixed := []delaytask.Item{{Tag: "a", Delay: time.Hour}, {Tag: "b", Delay: time.Hour}, {Tag: "a", Delay: time.Hour}}
	for name, items := range map[string][]delaytask.Item{"send a": same, "send": mixed} {
		results, err := f.SaveDelayTasks(f.ctx, items)
		if err != nil {
			t.Fatal(err)
		}
		span := one(t, f.SpanRecorder, name)
		wantAttributes(t, span, map[attribute.Key]any{"messaging.batch.message_count": int64(len(items))})
		for i, r := range results {
			if got := f.headers(t, r.ID)["traceparent"]; got != traceparent(span.SpanContext) {
				t.Errorf("%s, task %d: traceparent %q", name, i, got)
			}
		}
	}
	if n := len(f.Saved(t, "a", delaytasktest.Header("color", "red"))); n != 1 {
		t.Errorf("%d tasks have the header of one", n)
	}
}

func TestSaveInATransactionIsTraced(t *testing.T) {
	t.Parallel()
	recorder, provider := record()
	file := filepath.Join(t.TempDir(), "tasks.db")
	s, err := delaytask.Open(t.Context(), "sqlite:"+file, delaytask.Config{TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	id, err := s.SaveDelayTaskTx(t.Context(), tx, "mail", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveDelayTaskTx(t.Context(), tx, "late", nil, time.Hour); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("after the commit: %v", err)
	}
	send := one(t, recorder, "send mail")
	if got := headersOf(t, s, id)["traceparent"]; got != traceparent(send.SpanContext) || send.Status.Code != codes.Unset {
		t.Errorf("traceparent %q of %v, status %v", got, send.SpanContext, send.Status)
	}
	if late := one(t, recorder, "send late"); late.Status.Code != codes.Error {
		t.Errorf("status of a save after the commit: %v", late.Status)
	}
}

func TestSaveWhoseOutcomeIsUnknownFailsItsSpan(t *testing.T) {
	t.Parallel()
	recorder, provider := record()
	file := filepath.Join(t.TempDir(), "tasks.db")
	s, err := delaytask.Open(t.Context(), "sqlite:"+file, delaytask.Config{TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	blocker, err := db.BeginTx(t.Context(), nil) // holds the file's only write lock
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.SaveDelayTask(ctx, "mail", nil, time.Hour); !errors.Is(err, delaytask.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}
	send := one(t, recorder, "send mail")
	if send.Status.Code != codes.Error {
		t.Errorf("status %v", send.Status)
	}
	wantAttributes(t, send, map[attribute.Key]any{"error.type": "outcome_unknown"})
}

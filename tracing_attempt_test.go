package delaytask_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

func TestAttemptSaysHowLateItIs(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	f.save(t, "mail", time.Minute)
	f.Advance(time.Hour)
	f.register(t, "mail", func(context.Context, *processor.Task) error { return nil })
	f.Advance(0)
	wantAttributes(t, one(t, f.SpanRecorder, "process mail"), map[attribute.Key]any{
		"messaging.delaytask.lateness_ms": (59 * time.Minute).Seconds() * 1000,
	})
}

func TestSpansOfAttemptsSayWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1000)
	for _, tt := range []struct {
		name    string
		err     error
		status  codes.Code
		typ     any
		outcome any
	}{
		{"OK", nil, codes.Unset, nil, nil},
		{"an error", errors.New("no answer"), codes.Error, "*errors.errorString", nil},
		{"a long one that is not text", errors.New(long + "\xff"), codes.Error, "*errors.errorString", nil},
		{"a typed nil", (*typed)(nil), codes.Error, "*delaytask_test.typed", nil},
		{"a permanent one", processor.Permanent(errors.New("no")), codes.Error, "*processor.PermanentError", nil},
		{"timeout", context.DeadlineExceeded, codes.Error, "deadline_exceeded", nil},
		{"snooze", processor.Snooze(48 * time.Hour), codes.Unset, nil, "snoozed"},
		{"hand over", processor.HandOver(time.Hour), codes.Unset, nil, "handed_over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newTraced(t)
			f.register(t, "t", func(context.Context, *processor.Task) error { return tt.err }, processor.MaxAttempts(1))
			f.save(t, "t", 0)
			f.Advance(0)
			span := one(t, f.SpanRecorder, "process t")
			if span.Status.Code != tt.status || len(span.Status.Description) > 1024 {
				t.Errorf("status %v", span.Status)
			}
			wantAttributes(t, span, map[attribute.Key]any{"error.type": tt.typ, "messaging.delaytask.outcome": tt.outcome})
		})
	}
}

// typed is an error whose method panics on nil.
type typed struct{ text string }

func (e *typed) Error() string { return e.text }

func TestSpanOfAnInterruptedAttemptSaysWhy(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	f.register(t, "t", func(ctx context.Context, _ *processor.Task) error {
		<-ctx.Done()
		return errors.New("interrupted")
	}, processor.Timeout(time.Millisecond))
	f.save(t, "t", 0)
	f.Advance(0)
	wantAttributes(t, one(t, f.SpanRecorder, "process t"), map[attribute.Key]any{"error.type": "timeout"})
}

func TestPanicEndsTheSpanWithAnError(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	f.register(t, "panic", func(context.Context, *processor.Task) error { panic("out of order") }, processor.MaxAttempts(1))
	id := f.save(t, "panic", 0)
	f.Advance(0)
	span := one(t, f.SpanRecorder, "process panic")
	if span.Status.Code != codes.Error || span.Status.Description != "panic: out of order" {
		t.Errorf("status %v", span.Status)
	}
	wantAttributes(t, span, map[attribute.Key]any{"error.type": "panic"})
	task, err := f.Get(t.Context(), delaytask.ID(id))
	if err != nil || !strings.Contains(task.ErrorStack, "tracing_attempt_test.go") {
		t.Errorf("the task has lost the panic's stack: %v\n%s", err, task.ErrorStack)
	}
}

func TestGoexitEndsTheSpanWithAnError(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	f.register(t, "t", func(context.Context, *processor.Task) error { runtime.Goexit(); return nil })
	f.save(t, "t", 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Advance(0)
	}()
	<-done
	if span := one(t, f.SpanRecorder, "process t"); span.Status.Code != codes.Error {
		t.Errorf("status %v", span.Status)
	}
}

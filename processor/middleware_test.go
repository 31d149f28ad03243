package processor

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

func TestRecoveryKeepsTheStack(t *testing.T) {
	t.Parallel()
	err := Recovery()(Func(explode)).Process(t.Context(), &delaytask.Task{})
	p, ok := errors.AsType[*PanicError](err)
	if !ok || !strings.Contains(string(p.Stack), "processor.explode") || !errors.Is(err, io.EOF) ||
		err.Error() != "panic: EOF" {
		t.Errorf("got %v with the stack\n%s", err, p.Stack)
	}
	err = Recovery()(Func(func(context.Context, *delaytask.Task) error { panic(nil) })).Process(t.Context(),
		&delaytask.Task{})
	if _, ok := errors.AsType[*PanicError](err); !ok {
		t.Errorf("a panic of nil: got %v", err)
	}
}

func TestLoggingNamesTheTaskAndNeverItsBody(t *testing.T) {
	t.Parallel()
	task := &delaytask.Task{ID: 7, Tag: "mail", Version: 3, Attempt: 2, Body: []byte("secret"),
		Headers: map[string]string{"h": "secret"}}
	for _, tt := range []struct {
		p    Processor
		want string
	}{
		{succeed, `level=INFO msg="task completed" task=7 tag=mail version=3 attempt=2 took=`},
		{
			Func(func(context.Context, *delaytask.Task) error { return io.EOF }),
			`level=WARN msg="task attempt failed" task=7`,
		},
		{Func(explode), `err="panic: EOF"`},
		{Func(func(context.Context, *delaytask.Task) error { return Snooze(time.Minute) }),
			`level=INFO msg="task snoozed" task=7`},
	} {
		var out bytes.Buffer
		err := Logging(slog.New(slog.NewTextHandler(&out, nil)))(tt.p).Process(t.Context(), task)
		if got := out.String(); !strings.Contains(got, tt.want) || strings.Contains(got, "secret") ||
			strings.Count(got, "\n") != 1 {
			t.Errorf("for %v it wrote %s", err, got)
		}
	}
}

func TestTracingSeesEveryEnd(t *testing.T) {
	t.Parallel()
	type span struct{}
	for _, tt := range []struct {
		name string
		p    Func
		want error
	}{
		{"OK", succeed, nil},
		{"error", func(context.Context, *delaytask.Task) error { return io.ErrUnexpectedEOF }, io.ErrUnexpectedEOF},
		{"panic", explode, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ended []error
			hook := func(ctx context.Context, _ *delaytask.Task) (context.Context, func(error)) {
				return context.WithValue(ctx, span{}, true), func(err error) { ended = append(ended, err) }
			}
			inner := Func(func(ctx context.Context, task *delaytask.Task) error {
				if ctx.Value(span{}) == nil {
					t.Error("the processor does not get the hook's context")
				}
				return tt.p(ctx, task)
			})
			err := Tracing(hook)(inner).Process(t.Context(), &delaytask.Task{})
			if len(ended) != 1 || !errors.Is(ended[0], tt.want) || !errors.Is(err, tt.want) {
				t.Errorf("the hook saw %v, the scheduler %v, want %v once", ended, err, tt.want)
			}
		})
	}
}

func TestTracingEndsWhereTheProcessorEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	hook := func(ctx context.Context, _ *delaytask.Task) (context.Context, func(error)) {
		return ctx, func(err error) { ended <- err }
	}
	p := Tracing(hook)(Func(func(context.Context, *delaytask.Task) error {
		runtime.Goexit()
		return nil
	}))
	var gone sync.WaitGroup
	gone.Go(func() { _ = p.Process(t.Context(), &delaytask.Task{}) })
	gone.Wait()
	close(ended)
	if err := <-ended; !errors.Is(err, errGoexit) {
		t.Errorf("the hook saw %v, want %v", err, errGoexit)
	}
}

func TestTypedRefusesWhatDoesNotDecode(t *testing.T) {
	t.Parallel()
	var got []int
	p := Typed(func(_ context.Context, _ *delaytask.Task, body []int) error {
		got = body
		return nil
	})
	if err := p.Process(t.Context(), &delaytask.Task{Body: []byte("[1,2]")}); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, body := range []string{"", "[1", `["a"]`, "[1] [2]"} {
		err := p.Process(t.Context(), &delaytask.Task{Body: []byte(body)})
		if _, permanent := errors.AsType[*PermanentError](err); !permanent {
			t.Errorf("body %q gave %v, want a permanent error", body, err)
		}
	}
}

func TestCompleteTxReachesTheLease(t *testing.T) {
	t.Parallel()
	lease := &recordingLease{err: delaytask.ErrLeaseLost}
	ctx := WithLease(t.Context(), lease)
	tx := new(sql.Tx)
	if err := CompleteTx(ctx, tx); !errors.Is(err, delaytask.ErrLeaseLost) || lease.tx != tx {
		t.Errorf("got %v, and the lease got %v", err, lease.tx)
	}
	var none context.Context
	for want, err := range map[error]error{
		ErrNoLease: CompleteTx(t.Context(), tx), delaytask.ErrNilTx: CompleteTx(ctx, nil),
		delaytask.ErrNilContext: CompleteTx(none, tx),
	} {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if err := CompleteTx(ctx, (*sql.Tx)(nil)); !errors.Is(err, delaytask.ErrNilTx) {
		t.Errorf("nil *sql.Tx: %v", err)
	}
}

func explode(context.Context, *delaytask.Task) error { panic(io.EOF) }

type recordingLease struct {
	tx      delaytask.Tx
	err     error
	started int
}

func (l *recordingLease) Started() { l.started++ }

func (l *recordingLease) CompleteTx(_ context.Context, tx delaytask.Tx) error {
	l.tx = tx
	return l.err
}

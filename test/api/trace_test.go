package api

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// recorder keeps the spans that have ended.
type recorder struct{ *tracetest.SpanRecorder }

func record() (recorder, *sdktrace.TracerProvider) {
	r := recorder{tracetest.NewSpanRecorder()}
	return r, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r))
}

// spans returns the spans of a name, in the order of their ends.
func (r recorder) spans(name string) []tracetest.SpanStub {
	var named []tracetest.SpanStub
	for _, stub := range tracetest.SpanStubsFromReadOnlySpans(r.Ended()) {
		if stub.Name == name {
			named = append(named, stub)
		}
	}
	return named
}

func (r recorder) one(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	named := r.spans(name)
	if len(named) != 1 {
		t.Fatalf("%d spans %q have ended, want 1", len(named), name)
	}
	return named[0]
}

// traced is a scheduler in memory, a recorder of its spans, and a context with the span of a caller.
type traced struct {
	*delaytasktest.Scheduler
	recorder
	ctx    context.Context
	caller trace.SpanContext
}

func newTraced(t *testing.T, change ...func(*scheduler.Config)) traced {
	t.Helper()
	recorder, provider := record()
	cfg := scheduler.Config{TracerProvider: provider}
	for _, c := range change {
		c(&cfg)
	}
	ctx, caller := provider.Tracer("caller").Start(t.Context(), "caller")
	return traced{delaytasktest.New(t, delaytasktest.WithConfig(cfg)), recorder, ctx, caller.SpanContext()}
}

func (f traced) register(t *testing.T, tag string, p processor.Func, opts ...processor.RegisterOption) {
	t.Helper()
	servertest.OK(t, f.Register(tag, p, opts...))
}

func (f traced) save(t *testing.T, tag string, delay time.Duration, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := f.SaveDelayTask(f.ctx, tag, nil, delay, opts...)
	servertest.OK(t, err)
	return id
}

func wantAttributes(t *testing.T, span tracetest.SpanStub, want map[attribute.Key]any) {
	t.Helper()
	set := attribute.NewSet(span.Attributes...)
	for key, value := range want {
		if got, _ := set.Value(key); got.AsInterface() != value {
			t.Errorf("span %s: %s is %v, want %v", span.Name, key, got.AsInterface(), value)
		}
	}
}

func TestAttemptsLinkToTheSpanOfTheirSave(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	attempts := 0
	f.register(t, "mail", func(context.Context, *delaytask.Task) error {
		if attempts++; attempts < 3 {
			return errors.New("no answer")
		}
		return nil
	})
	id := f.save(t, "mail", time.Hour)
	f.Advance(2 * time.Hour)

	send := f.one(t, "send mail")
	if send.Parent.SpanID() != f.caller.SpanID() || send.SpanKind != trace.SpanKindProducer ||
		send.Status.Code != codes.Unset {
		t.Errorf("the save's span: parent %v, kind %v, status %v", send.Parent.SpanID(), send.SpanKind, send.Status)
	}
	wantAttributes(t, send, map[attribute.Key]any{
		"messaging.system": "delaytask", "messaging.operation.name": "send", "messaging.operation.type": "send",
		"messaging.destination.name": "mail", "messaging.message.id": strconv.FormatInt(id, 10),
		"messaging.delaytask.delay_ms": int64(3_600_000), "messaging.batch.message_count": nil,
	})
	process := f.spans("process mail")
	if len(process) != 3 {
		t.Fatalf("%d attempts have spans, want 3", len(process))
	}
	traces := map[trace.TraceID]bool{send.SpanContext.TraceID(): true}
	for i, span := range process {
		traces[span.SpanContext.TraceID()] = true
		if span.Parent.IsValid() || span.SpanKind != trace.SpanKindConsumer || len(span.Links) != 1 ||
			span.Links[0].SpanContext.SpanID() != send.SpanContext.SpanID() {
			t.Errorf("attempt %d: parent %v, kind %v, links %v", i+1, span.Parent.IsValid(), span.SpanKind, span.Links)
		}
		wantAttributes(t, span, map[attribute.Key]any{
			"messaging.system": "delaytask", "messaging.operation.name": "process",
			"messaging.operation.type": "process", "messaging.destination.name": "mail",
			"messaging.message.id": strconv.FormatInt(id, 10), "messaging.delaytask.attempt": int64(i + 1),
			"messaging.delaytask.lateness_ms": 0.0,
		})
		failed := i < 2
		if (span.Status.Code == codes.Error) != failed || (len(span.Events) == 1) != failed {
			t.Errorf("attempt %d: status %v and %d events", i+1, span.Status, len(span.Events))
		}
	}
	if len(traces) != 4 {
		t.Errorf("save and attempts make %d traces, want 4", len(traces))
	}
}

func TestSpansOfAttemptsSayWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	returns := func(err error) processor.Func { return func(context.Context, *delaytask.Task) error { return err } }
	for name, tt := range map[string]struct {
		p       processor.Func
		failed  bool
		typ     any
		outcome any
	}{
		"OK":       {nothing, false, nil, nil},
		"error":    {returns(errors.New("no answer")), true, "*errors.errorString", nil},
		"long":     {returns(errors.New(strings.Repeat("long ", 1000) + "\xff")), true, "*errors.errorString", nil},
		"typednil": {returns((*typed)(nil)), true, "*api.typed", nil},
		"forgood":  {returns(processor.Permanent(errors.New("no"))), true, "*processor.PermanentError", nil},
		"deadline": {returns(context.DeadlineExceeded), true, "deadline_exceeded", nil},
		"timeout": {func(ctx context.Context, _ *delaytask.Task) error {
			<-ctx.Done()
			return errors.New("interrupted")
		}, true, "timeout", nil},
		"snooze":   {returns(processor.Snooze(48 * time.Hour)), false, nil, "snoozed"},
		"handover": {returns(processor.HandOver(time.Hour)), false, nil, "handed_over"},
		"panic":    {func(context.Context, *delaytask.Task) error { panic("out of order") }, true, "panic", nil},
		"goexit": {func(context.Context, *delaytask.Task) error { runtime.Goexit(); return nil },
			true, "*errors.errorString", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTraced(t)
			timeout := time.Minute
			if name == "timeout" {
				timeout = time.Millisecond
			}
			f.register(t, name, tt.p, processor.MaxAttempts(1), processor.Timeout(timeout))
			id := f.save(t, name, 0)
			done := make(chan struct{})
			go func() { // which a processor may end
				defer close(done)
				f.Advance(0)
			}()
			<-done
			span := f.one(t, "process "+name)
			if (span.Status.Code == codes.Error) != tt.failed || len(span.Status.Description) > 1024 {
				t.Errorf("status %v", span.Status)
			}
			wantAttributes(t, span, map[attribute.Key]any{"error.type": tt.typ,
				"messaging.delaytask.outcome": tt.outcome})
			if name == "panic" && (span.Status.Description != "panic: out of order" ||
				!strings.Contains(get(t, f, id).ErrorStack, "trace_test.go")) {
				t.Errorf("status %v, and the task's error is %s", span.Status, get(t, f, id).ErrorStack)
			}
		})
	}
}

// typed is an error whose method panics on nil.
type typed struct{ text string }

func (e *typed) Error() string { return e.text }

func TestAttemptsContinueTheTraceOfTheirSaveWhenAsked(t *testing.T) {
	t.Parallel()
	f := newTraced(t, func(c *scheduler.Config) { c.ContinueTraces = true })
	f.save(t, "mail", time.Minute)
	f.Advance(time.Hour)
	f.register(t, "mail", nothing) // an attempt also says how late it is
	f.Advance(0)
	send, process := f.one(t, "send mail"), f.one(t, "process mail")
	if process.Parent.SpanID() != send.SpanContext.SpanID() || process.SpanContext.TraceID() != f.caller.TraceID() {
		t.Errorf("the attempt's parent is %v in trace %v", process.Parent.SpanID(), process.SpanContext.TraceID())
	}
	wantAttributes(t, process, map[attribute.Key]any{
		"messaging.delaytask.lateness_ms": (59 * time.Minute).Seconds() * 1000,
	})
}

func TestSpanOfAnAttemptIsOutermostAndReachesWhatItSaves(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	var outside trace.SpanContext
	seeing := func(next processor.Processor) processor.Processor {
		return processor.Func(func(ctx context.Context, task *delaytask.Task) error {
			outside = trace.SpanContextFromContext(ctx)
			return next.Process(ctx, task)
		})
	}
	f.register(t, "first", func(ctx context.Context, _ *delaytask.Task) error {
		_, err := f.SaveDelayTask(ctx, "second", nil, time.Hour)
		return err
	}, processor.Use(seeing))
	f.save(t, "first", 0)
	f.Advance(0)
	process := f.one(t, "process first").SpanContext.SpanID()
	if parent := f.one(t, "send second").Parent.SpanID(); outside.SpanID() != process || parent != process {
		t.Errorf("middleware sees %v, the save's parent is %v; want the attempt's %v", outside.SpanID(), parent,
			process)
	}
}

func TestBaggageTravelsWithAPropagatorThatTakesIt(t *testing.T) {
	t.Parallel()
	f := newTraced(t, func(c *scheduler.Config) {
		c.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	})
	bag, err := baggage.Parse("tenant=7")
	servertest.OK(t, err)
	var got string
	f.register(t, "mail", func(ctx context.Context, _ *delaytask.Task) error {
		got = baggage.FromContext(ctx).Member("tenant").Value()
		return nil
	})
	f.ctx = baggage.ContextWithBaggage(f.ctx, bag)
	f.save(t, "mail", 0)
	f.Advance(0)
	if got != "7" {
		t.Errorf("the processor's baggage is %q, want 7", got)
	}
}

func TestHeaderThatIsNoTraceContextIsNoLink(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	f.register(t, "mail", nothing)
	f.save(t, "mail", 0, delaytask.WithHeader("traceparent", "00-rubbish"))
	f.Advance(0)
	if span := f.one(t, "process mail"); len(span.Links) != 0 || span.Parent.IsValid() {
		t.Errorf("links %v, parent %v", span.Links, span.Parent)
	}
}

package delaytask_test

import (
	"context"
	"errors"
	"strconv"
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
	"github.com/delaytask/delaytask/processor"
)

// traced is a scheduler in memory, a recorder of its spans, and a context with the span of a caller.
type traced struct {
	*delaytasktest.Scheduler
	*tracetest.SpanRecorder
	ctx    context.Context
	caller trace.SpanContext
}

func newTraced(t *testing.T, change ...func(*delaytask.Config)) traced {
	t.Helper()
	recorder, provider := record()
	cfg := delaytask.Config{TracerProvider: provider}
	for _, c := range change {
		c(&cfg)
	}
	ctx, caller := provider.Tracer("caller").Start(t.Context(), "caller")
	return traced{delaytasktest.New(t, delaytasktest.WithConfig(cfg)), recorder, ctx, caller.SpanContext()}
}

func record() (*tracetest.SpanRecorder, *sdktrace.TracerProvider) {
	recorder := tracetest.NewSpanRecorder()
	return recorder, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
}

func (f traced) register(t *testing.T, tag string, p processor.Func, opts ...processor.RegisterOption) {
	t.Helper()
	if err := f.Register(tag, p, opts...); err != nil {
		t.Fatal(err)
	}
}

func (f traced) save(t *testing.T, tag string, delay time.Duration, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := f.SaveDelayTask(f.ctx, tag, nil, delay, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (f traced) headers(t *testing.T, id int64) map[string]string {
	t.Helper()
	return headersOf(t, f.Scheduler.Scheduler, id)
}

func headersOf(t *testing.T, s *delaytask.Scheduler, id int64) map[string]string {
	t.Helper()
	task, err := s.Get(t.Context(), delaytask.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return task.Headers
}

// spans returns the spans of a name that have ended, in that order.
func spans(r *tracetest.SpanRecorder, name string) []tracetest.SpanStub {
	var named []tracetest.SpanStub
	for _, stub := range tracetest.SpanStubsFromReadOnlySpans(r.Ended()) {
		if stub.Name == name {
			named = append(named, stub)
		}
	}
	return named
}

func one(t *testing.T, r *tracetest.SpanRecorder, name string) tracetest.SpanStub {
	t.Helper()
	named := spans(r, name)
	if len(named) != 1 {
		t.Fatalf("%d spans %q have ended, want 1", len(named), name)
	}
	return named[0]
}

func attributeOf(span tracetest.SpanStub, key attribute.Key) any {
	set := attribute.NewSet(span.Attributes...)
	value, _ := set.Value(key)
	return value.AsInterface()
}

func wantAttributes(t *testing.T, span tracetest.SpanStub, want map[attribute.Key]any) {
	t.Helper()
	for key, value := range want {
		if got := attributeOf(span, key); got != value {
			t.Errorf("span %s: %s is %v, want %v", span.Name, key, got, value)
		}
	}
}

// traceparent is the header of a sampled span.
func traceparent(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"
}

func TestAttemptsLinkToTheSpanOfTheirSave(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	attempts := 0
	f.register(t, "mail", func(context.Context, *processor.Task) error {
		if attempts++; attempts < 3 {
			return errors.New("no answer")
		}
		return nil
	})
	id := f.save(t, "mail", time.Hour)
	f.Advance(2 * time.Hour)

	send := one(t, f.SpanRecorder, "send mail")
	if send.Parent.SpanID() != f.caller.SpanID() || send.SpanKind != trace.SpanKindProducer || send.Status.Code != codes.Unset {
		t.Errorf("the save's span: parent %v, kind %v, status %v", send.Parent.SpanID(), send.SpanKind, send.Status)
	}
	wantAttributes(t, send, map[attribute.Key]any{
		"messaging.system": "delaytask", "messaging.operation.name": "send", "messaging.operation.type": "send",
		"messaging.destination.name": "mail", "messaging.message.id": strconv.FormatInt(id, 10),
		"messaging.delaytask.delay_ms": int64(3_600_000), "messaging.batch.message_count": nil,
	})
	process := spans(f.SpanRecorder, "process mail")
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
			"messaging.system": "delaytask", "messaging.operation.name": "process", "messaging.operation.type": "process",
			"messaging.destination.name": "mail", "messaging.message.id": strconv.FormatInt(id, 10),
			"messaging.delaytask.attempt": int64(i + 1), "messaging.delaytask.lateness_ms": 0.0,
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

func TestAttemptsContinueTheTraceOfTheirSaveWhenAsked(t *testing.T) {
	t.Parallel()
	f := newTraced(t, func(c *delaytask.Config) { c.ContinueTraces = true })
	f.register(t, "mail", func(context.Context, *processor.Task) error { return nil })
	f.save(t, "mail", time.Hour)
	f.Advance(time.Hour)
	send, process := one(t, f.SpanRecorder, "send mail"), one(t, f.SpanRecorder, "process mail")
	if process.Parent.SpanID() != send.SpanContext.SpanID() || process.SpanContext.TraceID() != f.caller.TraceID() {
		t.Errorf("the attempt's parent is %v in trace %v", process.Parent.SpanID(), process.SpanContext.TraceID())
	}
}

func TestSpanOfAnAttemptIsOutermostAndReachesWhatItSaves(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	var outside trace.SpanContext
	seeing := func(next processor.Processor) processor.Processor {
		return processor.Func(func(ctx context.Context, task *processor.Task) error {
			outside = trace.SpanContextFromContext(ctx)
			return next.Process(ctx, task)
		})
	}
	f.register(t, "first", func(ctx context.Context, _ *processor.Task) error {
		_, err := f.SaveDelayTask(ctx, "second", nil, time.Hour)
		return err
	}, processor.Use(seeing))
	f.save(t, "first", 0)
	f.Advance(0)
	process := one(t, f.SpanRecorder, "process first")
	if outside.SpanID() != process.SpanContext.SpanID() {
		t.Errorf("middleware has the span %v, want the attempt's %v", outside.SpanID(), process.SpanContext.SpanID())
	}
	if parent := one(t, f.SpanRecorder, "send second").Parent; parent.SpanID() != process.SpanContext.SpanID() {
		t.Errorf("the save's parent is %v, want the attempt %v", parent.SpanID(), process.SpanContext.SpanID())
	}
}

func TestBaggageTravelsWithAPropagatorThatTakesIt(t *testing.T) {
	t.Parallel()
	f := newTraced(t, func(c *delaytask.Config) {
		c.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	})
	member, err := baggage.NewMember("tenant", "7")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	f.register(t, "mail", func(ctx context.Context, _ *processor.Task) error {
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
	f.register(t, "mail", func(context.Context, *processor.Task) error { return nil })
	f.save(t, "mail", 0, delaytask.WithHeader("traceparent", "00-rubbish"))
	f.Advance(0)
	if span := one(t, f.SpanRecorder, "process mail"); len(span.Links) != 0 || span.Parent.IsValid() {
		t.Errorf("links %v, parent %v", span.Links, span.Parent)
	}
}

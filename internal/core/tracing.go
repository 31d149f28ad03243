package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// tracing makes spans, and passes their context on in the headers of tasks.
type tracing struct {
	tracer     trace.Tracer // nil: no spans
	propagator propagation.TextMapPropagator
	continues  bool
	now        func() time.Time // on the database's clock; zero while that is not known
}

// Tracing says what spans are made, and how their context is passed on.
type Tracing struct {
	Provider   trace.TracerProvider // nil: no spans
	Propagator propagation.TextMapPropagator
	Continues  bool // an attempt goes on with the trace of its save
}

func newTracing(cfg Tracing, now func() time.Time) tracing {
	t := tracing{propagator: cfg.Propagator, continues: cfg.Continues, now: now}
	if cfg.Provider != nil {
		t.tracer = cfg.Provider.Tracer("github.com/delaytask/delaytask",
			trace.WithInstrumentationVersion(engine.Version), trace.WithSchemaURL(semconv.SchemaURL))
	}
	return t
}

// send begins the span of one save. It is nil where there is no tracer.
func (t *tracing) send(ctx context.Context, tag string) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	return t.startSend(ctx, tag)
}

// sendAll is send for a bulk save of n tasks.
func (t *tracing) sendAll(ctx context.Context, n int, tagOf func(int) string) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	return t.startSend(ctx, commonTag(n, tagOf), semconv.MessagingBatchMessageCount(n))
}

func (t *tracing) startSend(ctx context.Context, tag string, also ...attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, spanName(sendOperation, tag), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(also...),
		trace.WithAttributes(destination(sendOperation, semconv.MessagingOperationTypeSend, tag)...))
}

// commonTag is "" where the tasks have several.
func commonTag(n int, tagOf func(int) string) string {
	for i := range n {
		if tagOf(i) != tagOf(0) {
			return ""
		}
	}
	if n == 0 {
		return ""
	}
	return tagOf(0)
}

// noteDelay adds the delay of the task to the span of a save, if there is one.
func (t *tracing) noteDelay(span trace.Span, save *delaytask.Save) {
	if span == nil {
		return
	}
	delay := save.Delay
	if !save.At.IsZero() {
		delay = max(save.At.Sub(t.now()), 0)
	}
	span.SetAttributes(delayKey.Int64(delay.Milliseconds()))
}

// carried returns the trace headers of a task: nil if the context has no span.
func (t *tracing) carried(ctx context.Context) propagation.MapCarrier {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	return carrier
}

// join adds what is carried to the headers of a save. They stay as they are if the caller has set a trace context,
// which must not be mixed with another one. They also stay if both together are too long: a save must not fail for its
// trace.
func (t *tracing) join(headers map[string]string, carried propagation.MapCarrier) map[string]string {
	if len(carried) == 0 {
		return headers
	}
	for _, name := range t.propagator.Fields() {
		if _, given := headers[name]; given {
			return headers
		}
	}
	both, err := request.NewSave("headers", nil, 0, request.Limits{}, delaytask.WithHeaders(carried),
		delaytask.WithHeaders(headers))
	if err != nil {
		return headers
	}
	return both.Headers
}

// process begins the span of an attempt and returns its end. It is a [processor.TraceHook].
func (t *tracing) process(ctx context.Context, task *delaytask.Task) (context.Context, func(error)) {
	ctx = t.propagator.Extract(ctx, propagation.MapCarrier(task.Headers))
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(destination(processOperation, semconv.MessagingOperationTypeProcess, task.Tag)...),
		trace.WithAttributes(t.attempt(task)...),
	}
	if !t.continues {
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
	}
	ctx, span := t.tracer.Start(ctx, spanName(processOperation, task.Tag), options...)
	return ctx, func(err error) {
		defer span.End()
		endAttempt(span, err, context.Cause(ctx))
	}
}

func (t *tracing) attempt(task *delaytask.Task) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		semconv.MessagingMessageID(strconv.FormatInt(task.ID, 10)),
		attemptKey.Int(task.Attempt),
		versionKey.Int64(task.Version),
	}
	if now := t.now(); !now.IsZero() {
		attributes = append(attributes, latenessKey.Float64(milliseconds(max(now.Sub(task.Due), 0))))
	}
	return attributes
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// The operations of spans, as the conventions for messaging call them.
const (
	sendOperation    = "send"
	processOperation = "process"
)

// Attributes beyond the conventions, under the prefix that they leave to each system.
const (
	attemptKey   = attribute.Key("messaging.delaytask.attempt")
	versionKey   = attribute.Key("messaging.delaytask.version")
	latenessKey  = attribute.Key("messaging.delaytask.lateness_ms") // of the attempt, over its own due time
	delayKey     = attribute.Key("messaging.delaytask.delay_ms")
	duplicateKey = attribute.Key("messaging.delaytask.duplicate")
	outcomeKey   = attribute.Key("messaging.delaytask.outcome")
)

var system = semconv.MessagingSystemKey.String("delaytask")

// spanErrorLimit bounds an error's text, in bytes.
const spanErrorLimit = 1 << 10

// errorTypes are the values of error.type that are not the names of Go types.
var errorTypes = []struct {
	err  error
	name string
}{
	{delaytask.ErrOutcomeUnknown, "outcome_unknown"},
	{delaytask.ErrOverloaded, "overloaded"},
	{delaytask.ErrNotStored, "not_stored"},
	{delaytask.ErrConflict, "conflict"},
	{delaytask.ErrClosed, "closed"},
	{delaytask.ErrTimeout, "timeout"},
	{delaytask.ErrCancelled, "cancelled"},
	{delaytask.ErrStopping, "stopping"},
	{delaytask.ErrLeaseLost, "lease_lost"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{context.Canceled, "context_canceled"},
}

// spanName leaves out an invalid tag.
func spanName(operation, tag string) string {
	if !delaytask.ValidTag(tag) {
		return operation
	}
	return operation + " " + tag
}

func destination(operation string, kind attribute.KeyValue, tag string) []attribute.KeyValue {
	attributes := []attribute.KeyValue{system, semconv.MessagingOperationName(operation), kind}
	if delaytask.ValidTag(tag) {
		attributes = append(attributes, semconv.MessagingDestinationName(tag))
	}
	return attributes
}

// endSend ends the span of a save, if there is one. A duplicate is no failure.
func endSend(span trace.Span, id int64, err error) {
	if span == nil {
		return
	}
	defer span.End()
	if id != 0 {
		span.SetAttributes(semconv.MessagingMessageID(strconv.FormatInt(id, 10)))
	}
	if errors.Is(err, delaytask.ErrDuplicate) {
		span.SetAttributes(duplicateKey.Bool(true))
		return
	}
	fail(span, err, nil)
}

// endAttempt adds the processor's result to the span of an attempt. A snoozed or handed over task has not failed.
func endAttempt(span trace.Span, err, cause error) {
	if _, snoozed := errors.AsType[*processor.SnoozeError](err); snoozed {
		span.SetAttributes(outcomeKey.String("snoozed"))
		return
	}
	if _, handed := errors.AsType[*processor.HandOverError](err); handed {
		span.SetAttributes(outcomeKey.String("handed_over"))
		return
	}
	fail(span, err, cause)
}

// fail gives the span an error, if there is one. cause is why the context of the work had ended.
func fail(span trace.Span, err, cause error) {
	if err == nil {
		return
	}
	text := row.Shorten(fmt.Sprint(err), spanErrorLimit) // a typed nil inside must not panic
	span.AddEvent(semconv.ExceptionEventName,
		trace.WithAttributes(semconv.ExceptionType(fmt.Sprintf("%T", err)), semconv.ExceptionMessage(text)))
	span.SetAttributes(errorType(err, cause))
	span.SetStatus(codes.Error, text)
}

func errorType(err, cause error) attribute.KeyValue {
	if _, panicked := errors.AsType[*processor.PanicError](err); panicked {
		return semconv.ErrorTypeKey.String("panic")
	}
	for _, known := range errorTypes {
		if errors.Is(err, known.err) || errors.Is(cause, known.err) {
			return semconv.ErrorTypeKey.String(known.name)
		}
	}
	return semconv.ErrorType(err)
}

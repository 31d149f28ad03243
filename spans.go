package delaytask

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// The operations of spans, as the conventions for messaging call them.
const (
	sendOperation    = "send"
	processOperation = "process"
)

// Attributes beside those of the conventions, under the prefix that they leave to each system.
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
	{ErrOutcomeUnknown, "outcome_unknown"},
	{ErrOverloaded, "overloaded"},
	{ErrConflict, "conflict"},
	{ErrClosed, "closed"},
	{ErrTimeout, "timeout"},
	{ErrCancelled, "cancelled"},
	{ErrStopping, "stopping"},
	{ErrLeaseLost, "lease_lost"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{context.Canceled, "context_canceled"},
}

// spanName leaves out a tag that there cannot be: it may be anything.
func spanName(operation, tag string) string {
	if !processor.ValidTag(tag) {
		return operation
	}
	return operation + " " + tag
}

func destination(operation string, kind attribute.KeyValue, tag string) []attribute.KeyValue {
	attributes := []attribute.KeyValue{system, semconv.MessagingOperationName(operation), kind}
	if processor.ValidTag(tag) {
		attributes = append(attributes, semconv.MessagingDestinationName(tag))
	}
	return attributes
}

// endSend ends the span of a save, if there is one. To meet a task with the same key is an answer and no failure.
func endSend(span trace.Span, id int64, err error) {
	if span == nil {
		return
	}
	defer span.End()
	if id != 0 {
		span.SetAttributes(semconv.MessagingMessageID(strconv.FormatInt(id, 10)))
	}
	if errors.Is(err, ErrDuplicate) {
		span.SetAttributes(duplicateKey.Bool(true))
		return
	}
	fail(span, err, nil)
}

// endAttempt tells of an attempt what its processor has said. What was put off or handed over has not failed.
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
	text := row.Clip(fmt.Sprint(err), spanErrorLimit) // a typed nil inside must not panic
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

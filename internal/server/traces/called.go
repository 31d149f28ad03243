package traces

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Called returns what makes a span of each call to an address: it begins the span, and returns the end of it. Addresses
// are told without their paths, which are often secret.
func Called(tracer trace.Tracer) func(ctx context.Context, method, host string) (context.Context, func(status int, err error)) {
	return func(ctx context.Context, method, host string) (context.Context, func(status int, err error)) {
		ctx, span := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(called(method, host)...))
		return ctx, func(status int, err error) {
			defer span.End()
			if status != 0 {
				span.SetAttributes(semconv.HTTPResponseStatusCode(status))
			}
			if err == nil {
				return
			}
			kind := fmt.Sprintf("%T", err)
			if status >= 400 {
				kind = strconv.Itoa(status)
			}
			span.SetAttributes(semconv.ErrorTypeKey.String(kind))
			span.SetStatus(codes.Error, err.Error())
		}
	}
}

func called(method, host string) []attribute.KeyValue {
	attributes := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(method)}
	name, text, err := net.SplitHostPort(host)
	if err != nil {
		return append(attributes, semconv.ServerAddress(host))
	}
	attributes = append(attributes, semconv.ServerAddress(name))
	if port, err := strconv.Atoi(text); err == nil {
		attributes = append(attributes, semconv.ServerPort(port))
	}
	return attributes
}

// Inject passes the trace of ctx on in the headers of a call, as W3C trace context. It leaves them alone where the call
// brings a trace of its own.
func Inject(ctx context.Context, header http.Header) {
	if header.Get("traceparent") == "" {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

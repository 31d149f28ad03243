// Package traces makes the spans of a server: of the requests that it serves, and of the calls that it makes. It
// continues the traces of its callers.
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

// quiet paths are polled every few seconds by monitoring.
var quiet = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}

// Served makes a span of each request, a child of what [Extracted] has found. [Answered] names it.
func Served(tracer trace.Tracer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if quiet[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		ctx, span := tracer.Start(r.Context(), "HTTP", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Answered records in the span of a request, if ctx carries one, how it was answered. The route is a pattern, "" where
// none matched. The path itself, which may contain a task's key, is not recorded.
func Answered(ctx context.Context, method, route string, status int) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	name := method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
	default: // a caller can invent others
		name, method = "HTTP", "_OTHER"
	}
	if route != "" {
		name += " " + route
		span.SetAttributes(semconv.HTTPRoute(route))
	}
	span.SetName(name)
	span.SetAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPResponseStatusCode(status))
	if status >= 500 {
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
}

// Extracted puts the trace context of each request into its context, so that what the request saves belongs to the
// caller's trace. A nil propagator means W3C trace context (traceparent and tracestate). A malformed header
// changes nothing.
func Extracted(p propagation.TextMapPropagator, next http.Handler) http.Handler {
	if p == nil {
		p = propagation.TraceContext{}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := p.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		if ctx != r.Context() {
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// Called returns a hook that makes a span of each call to an address: it begins the span, and returns its end.
// Addresses are recorded without their paths, which are often secret.
func Called(
	tracer trace.Tracer,
) func(ctx context.Context, method, host string) (context.Context, func(status int, err error)) {
	return func(ctx context.Context, method, host string) (context.Context, func(status int, err error)) {
		ctx, span := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(called(method, host)...))
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

// Inject passes the trace of ctx on in the headers of a call, as W3C trace context. It does not change the headers of a
// call that has a trace of its own.
func Inject(ctx context.Context, header http.Header) {
	if header.Get("traceparent") == "" {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

package traces

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// Extracted puts the trace context of each request into its context, so that what the request saves belongs to the caller's trace.
// A nil propagator is that of W3C trace context (traceparent and tracestate). A header that is none changes nothing.
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

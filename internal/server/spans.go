package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/server/api"
	"github.com/delaytask/delaytask/internal/server/otlp"
	"github.com/delaytask/delaytask/internal/server/traces"
	"github.com/delaytask/delaytask/processor/webhook"
	"github.com/delaytask/delaytask/scheduler"
)

// spans makes the spans of the service. It is nil where none are sent, and its methods then change nothing.
type spans struct {
	exporter *otlp.Exporter
	tracer   trace.Tracer
}

func newSpans(
	ctx context.Context, to otlp.Settings, log *slog.Logger, registry prometheus.Registerer, masks *redact.Redactor,
) (*spans, error) {
	if to.Host() == "" {
		return nil, nil
	}
	counted := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "delaytask_trace_spans_total",
		Help: "Spans that ended, by what became of them: sent to the collector, or lost because the queue was full " +
			"or it took none.",
	}, []string{"result"})
	for _, result := range []string{otlp.Sent, otlp.Overflow, otlp.Failed} {
		counted.WithLabelValues(result) // visible before the first event: a rate needs a first zero
	}
	if err := registry.Register(counted); err != nil {
		return nil, err
	}
	exporter, err := otlp.New(ctx, otlp.Config{
		Settings: to, Service: "delaytask", Version: scheduler.Version, Log: log,
		Count: func(result string, n int) { counted.WithLabelValues(result).Add(float64(n)) },
		Mask:  func(text string) string { return masks.Text("", text) },
	})
	if err != nil {
		return nil, err
	}
	tracer := exporter.Provider().Tracer("github.com/delaytask/delaytask/service",
		trace.WithInstrumentationVersion(scheduler.Version))
	return &spans{exporter, tracer}, nil
}

// provider is nil where no spans are made.
func (s *spans) provider() trace.TracerProvider {
	if s == nil {
		return nil
	}
	return s.exporter.Provider()
}

func (s *spans) served(api http.Handler) http.Handler {
	if s == nil {
		return api
	}
	return traces.Served(s.tracer, api)
}

func (s *spans) observed(next func(context.Context, api.Request)) func(context.Context, api.Request) {
	if s == nil {
		return next
	}
	return func(ctx context.Context, r api.Request) {
		traces.Answered(ctx, r.Method, r.Route, r.Status)
		next(ctx, r)
	}
}

func (s *spans) called() webhook.TraceHook {
	if s == nil {
		return nil
	}
	return traces.Called(s.tracer)
}

func (s *spans) inject() func(context.Context, http.Header) {
	if s == nil {
		return nil
	}
	return traces.Inject
}

func (s *spans) close(ctx context.Context) {
	if s != nil {
		s.exporter.Close(ctx)
	}
}

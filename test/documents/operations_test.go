package documents

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

func TestMetricsAreThoseOfAScheduler(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), embedded(t)
	m := metrics.New() // github.com/delaytask/delaytask/metrics
	prometheus.MustRegister(m)
	tasks, err := scheduler.Open(ctx, dsn, scheduler.Config{Metrics: m})
	servertest.OK(t, err)
	defer servertest.Stop(t, tasks)
	save(t, tasks, "mail.send", "hello")
	families, err := prometheus.DefaultGatherer.Gather()
	servertest.OK(t, err)
	for _, family := range families {
		if family.GetName() == "delaytask_saves_total" {
			return
		}
	}
	t.Error("the default registry has no delaytask_saves_total")
}

func TestSaveAndAttemptMakeSpans(t *testing.T) {
	t.Parallel()
	ctx, dsn, exporter, order := t.Context(), embedded(t), tracetest.NewInMemoryExporter(), order{Number: 42}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	tasks, err := scheduler.Open(ctx, dsn, scheduler.Config{TracerProvider: provider})
	servertest.OK(t, err)
	defer servertest.Stop(t, tasks)
	closeOrder := func(context.Context, *delaytask.Task) error { return nil }
	register := func() error {
		err := tasks.Register("order.close", processor.Func(func(ctx context.Context, task *delaytask.Task) error {
			return closeOrder(ctx, task) // spans made of this ctx are children of "process order.close"
		}))
		return err
	}
	servertest.OK(t, register())
	servertest.OK(t, tasks.Start(ctx))
	place := func(ctx context.Context) (int64, error) {
		ctx, span := provider.Tracer("shop").Start(ctx, "place order")
		id, err := tasks.SaveDelayTask(ctx, "order.close", order, 30*time.Minute)
		span.End()
		return id, err
	}
	id, err := place(ctx)
	servertest.OK(t, err)
	_, err = tasks.Reschedule(ctx, delaytask.ID(id), 0)
	servertest.OK(t, err)
	var save, attempt tracetest.SpanStub
	servertest.Eventually(t, "the attempt has a span", func() bool {
		servertest.OK(t, provider.ForceFlush(ctx))
		for _, span := range exporter.GetSpans() {
			switch span.Name {
			case "send order.close":
				save = span
			case "process order.close":
				attempt = span
			}
		}
		return attempt.Name != ""
	})
	if !save.Parent.IsValid() || attempt.Parent.IsValid() || len(attempt.Links) != 1 ||
		attempt.Links[0].SpanContext.SpanID() != save.SpanContext.SpanID() {
		t.Errorf("the spans are %+v, %+v", save, attempt)
	}
}

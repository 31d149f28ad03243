package scheduler_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask/scheduler"
)

// A program that pops a task continues its trace with the propagator of OpenTelemetry: its headers carry the context of
// the save.
func ExampleScheduler_Pop_trace() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "delaytask")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	provider := sdktrace.NewTracerProvider() // with an exporter, in a real program
	defer func() { _ = provider.Shutdown(ctx) }()
	scheduler, err := scheduler.Open(ctx, "sqlite:"+filepath.Join(dir, "tasks.db"),
		scheduler.Config{TracerProvider: provider})
	if err != nil {
		log.Fatal(err)
	}
	defer scheduler.Stop(ctx)
	if err := scheduler.Start(ctx); err != nil {
		log.Fatal(err)
	}

	tracer := provider.Tracer("shop")
	caller, order := tracer.Start(ctx, "order")
	if _, err := scheduler.SaveDelayTask(caller, "order.close", nil, 0); err != nil {
		log.Fatal(err)
	}
	order.End()

	tasks, err := scheduler.Pop(ctx, "order.close")
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range tasks {
		saved := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(task.Headers))
		working, span := tracer.Start(ctx, "process "+task.Tag, trace.WithLinks(trace.LinkFromContext(saved)))
		fmt.Println(trace.SpanContextFromContext(saved).TraceID() == order.SpanContext().TraceID())
		if err := task.Finish(working); err != nil {
			log.Fatal(err)
		}
		span.End()
	}
	// Output: true
}

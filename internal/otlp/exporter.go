package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// flushWait is how long Close waits for what has not been sent yet.
const flushWait = 5 * time.Second

// Config is what an [Exporter] is made of. Nothing may be left out.
type Config struct {
	Settings Settings
	Service  string // what the spans are said to come from, unless the environment names it
	Version  string
	Log      *slog.Logger
	Count    func(result string, spans int) // is told what becomes of spans: Sent, Overflow or Failed
}

// Exporter makes spans and sends them. Neither making nor ending one waits for the collector.
type Exporter struct {
	provider *sdktrace.TracerProvider
	client   *client
	ledger   *ledger
	ended    chan struct{}
}

// New makes an exporter, whose owner closes it. It returns an error about OTEL_RESOURCE_ATTRIBUTES or a proxy of the environment.
func New(ctx context.Context, c Config) (*Exporter, error) {
	if _, err := http.ProxyFromEnvironment(&http.Request{URL: c.Settings.to}); err != nil {
		return nil, errors.New("the proxy of the environment (HTTPS_PROXY, HTTP_PROXY) is no URL") // the error quotes its password
	}
	what, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(c.Service), semconv.ServiceVersion(c.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES must be name=value pairs between commas: %w", err)
	}
	e := &Exporter{
		client: newClient(c.Settings, c.Service+"/"+c.Version),
		ledger: newLedger(c.Settings, c.Count, c.Log),
		ended:  make(chan struct{}),
	}
	exporter, err := otlptrace.New(ctx, e.client)
	if err != nil {
		return nil, err
	}
	queue := sdktrace.NewBatchSpanProcessor(settling{exporter, e.ledger, e.ended}, sdktrace.WithMaxQueueSize(c.Settings.queue))
	e.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(what), sdktrace.WithSpanProcessor(admitting{queue, e.ledger}))
	return e, nil
}

// Provider makes the spans.
func (e *Exporter) Provider() trace.TracerProvider { return e.provider }

// Close sends what has not been sent yet, within five seconds and as long as ctx lasts; what the collector has not taken by then is
// lost. Spans that end later are dropped.
func (e *Exporter) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	_ = e.provider.Shutdown(ctx) // the ledger says what could not be sent
	e.client.abandon()           // so that what is still being sent ends now
	<-e.ended
	e.ledger.complain(errors.New("this process ends"))
}

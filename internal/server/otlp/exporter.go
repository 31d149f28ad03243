package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// flushWait is how long Close waits for spans that are not sent.
const flushWait = 5 * time.Second

// Config is what an [Exporter] is made of. Nothing may be left out.
type Config struct {
	Settings Settings
	Service  string // the name of the service, unless the environment sets it
	Version  string
	Log      *slog.Logger
	Count    func(result string, spans int) // called with the outcome of spans: Sent, Overflow or Failed
	Mask     func(text string) string       // a text without its secrets
}

// Exporter makes spans and sends them. Neither making nor ending one waits for the collector.
type Exporter struct {
	provider *sdktrace.TracerProvider
	exporter *otlptrace.Exporter
	courier  *courier
	ledger   *ledger
	mask     func(text string) string
	ended    chan struct{}
}

// New makes an exporter, whose owner closes it. It returns an error about OTEL_RESOURCE_ATTRIBUTES or a proxy of the
// environment.
func New(ctx context.Context, c Config) (*Exporter, error) {
	if _, err := http.ProxyFromEnvironment(&http.Request{URL: c.Settings.to}); err != nil {
		// The error quotes the password of the proxy, so it is not passed on.
		return nil, errors.New("the proxy of the environment (HTTPS_PROXY, HTTP_PROXY) is no URL")
	}
	what, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(c.Service), semconv.ServiceVersion(c.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES must be name=value pairs between commas: %w", err)
	}
	e := &Exporter{
		courier: newCourier(c.Settings), ledger: newLedger(c.Settings, c.Count, c.Log), mask: c.Mask,
		ended: make(chan struct{}),
	}
	complaints := collected()
	// The headers are the collector's alone.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e.exporter, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.Settings.to.String()),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: e.courier, CheckRedirect: stay}),
		otlptracehttp.WithTLSClientConfig(nil)) // the courier has it
	if err != nil {
		return nil, err
	}
	queue := sdktrace.NewBatchSpanProcessor(settling{e}, sdktrace.WithMaxQueueSize(c.Settings.queue))
	e.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(what),
		sdktrace.WithSpanProcessor(admitting{queue, e.ledger}))
	if said := complaints(); said != "" {
		e.Close(ctx)
		return nil, fmt.Errorf("the variables of OpenTelemetry have values that cannot be used: %s", said)
	}
	return e, nil
}

// collected has the SDK tell what it cannot use of the environment. The returned function ends that, and returns what
// was told. Of the SDK's logger it is the messages alone: their arguments are values of variables, which may be secret.
func collected() (end func() string) {
	var said strings.Builder
	message := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey {
			return a
		}
		return slog.Attr{}
	}
	otel.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(&said, &slog.HandlerOptions{
		Level: slog.LevelError, ReplaceAttr: message,
	})))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(&said, err) }))
	return func() string {
		otel.SetLogger(logr.Discard())
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
		return strings.Join(strings.Fields(said.String()), " ")
	}
}

// Provider makes the spans.
func (e *Exporter) Provider() trace.TracerProvider { return e.provider }

// Close sends the remaining spans, for at most five seconds and as long as ctx lasts; what the collector has not taken
// by then is lost. Spans that end later are dropped.
func (e *Exporter) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	_ = e.provider.Shutdown(ctx) // the ledger reports what could not be sent
	_ = e.exporter.Shutdown(ctx) // so that what is still being sent ends now
	<-e.ended
	(&http.Client{Transport: e.courier.transport}).CloseIdleConnections()
	e.ledger.logLost(errors.New("this process ends"))
}

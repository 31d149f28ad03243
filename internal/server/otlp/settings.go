// Package otlp sends spans to a collector of OpenTelemetry, as OTLP over HTTP. It is configured by the variables that
// the OpenTelemetry specification defines.
package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
)

const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
)

// Settings say where spans are sent. The zero value sends none. The path of the collector may be secret, and is never
// printed. The SDK itself reads headers, compression, sampler, batches and resource from the environment.
type Settings struct {
	to      *url.URL      // nil: nowhere
	timeout time.Duration // of one request
	tls     *tls.Config   // nil: the system's roots
	queue   int           // spans that wait to be sent
}

// FromEnv reads the variables. Spans are sent where an endpoint is set, or OTEL_TRACES_EXPORTER asks for it. It returns
// an error that names every variable with an invalid value.
func FromEnv(getenv func(string) string) (Settings, error) {
	e := environment{get: func(name string) string { return strings.TrimSpace(getenv(name)) }}
	if strings.EqualFold(e.get("OTEL_SDK_DISABLED"), "true") {
		return Settings{}, nil
	}
	switch exporter := e.get("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return Settings{}, nil
	case "otlp":
	case "":
		if _, value := e.exporter("ENDPOINT"); value == "" {
			return Settings{}, nil
		}
	default:
		return Settings{}, fmt.Errorf("OTEL_TRACES_EXPORTER is %.80q: spans are sent by otlp alone; set it to that, "+
			"or to none", exporter)
	}
	var s Settings
	var errs []error
	s.to = e.endpoint(&errs)
	s.timeout = time.Duration(e.number(e.name("TIMEOUT"), int(defaultTimeout.Milliseconds()), &errs)) * time.Millisecond
	s.queue = e.number("OTEL_BSP_MAX_QUEUE_SIZE", trace.DefaultMaxQueueSize, &errs)
	s.tls = e.certificates(&errs)
	e.checkProtocol(&errs)
	if err := errors.Join(errs...); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// Host is the host and the port of the collector, "" where spans are sent nowhere.
func (s Settings) Host() string {
	if s.to == nil {
		return ""
	}
	return s.to.Host
}

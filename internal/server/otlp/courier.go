package otlp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// mostAnswer is how many bytes of an answer are read, so that the connection can be reused.
const mostAnswer = 64 << 10

// retries apply when a collector cannot take spans now. By default the SDK gives a batch no more time than that.
var retries = otlptracehttp.RetryConfig{
	Enabled: true, InitialInterval: 2 * time.Second, MaxInterval: 10 * time.Second, MaxElapsedTime: 30 * time.Second,
}

// courier sends the exporter's requests to the collector. The exporter's errors quote the collector's address and its
// answer, which may both contain secrets. So the courier hides the answer from it, and notes the failure itself.
type courier struct {
	settings  Settings
	transport http.RoundTripper
	failure   error // of the last request, which belongs to the only export at that time
}

func newCourier(s Settings) *courier {
	return &courier{settings: s, transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     s.tls,
		TLSHandshakeTimeout: s.timeout,
		ForceAttemptHTTP2:   true, // a custom TLS configuration turns it off otherwise
		IdleConnTimeout:     90 * time.Second,
	}}
}

// options are those of the exporter. All are set, so that it reads none from the environment.
func (c *courier) options(agent string) []otlptracehttp.Option {
	headers := map[string]string{"User-Agent": agent}
	for name := range c.settings.header {
		headers[name] = c.settings.header.Get(name)
	}
	compression := otlptracehttp.NoCompression
	if c.settings.gzip {
		compression = otlptracehttp.GzipCompression
	}
	// The headers are the collector's alone.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(c.settings.to.String()),
		otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithCompression(compression),
		otlptracehttp.WithRetry(retries),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: c, CheckRedirect: stay}),
		otlptracehttp.WithTLSClientConfig(nil), // the transport has it
	}
}

// RoundTrip implements [http.RoundTripper].
func (c *courier) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), c.settings.timeout)
	defer cancel()
	r = r.Clone(ctx)
	r.URL = c.settings.to // with its query, which the exporter leaves out
	// A collector drops duplicate spans. The empty key, which is not sent, lets the transport repeat a request at once
	// when the collector was closing its idle connection.
	r.Header["Idempotency-Key"] = nil
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		c.failure = err
		return nil, fmt.Errorf("post spans: %w", err) // a bare timeout would be tried again
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, mostAnswer))
	_ = resp.Body.Close()
	resp.Body = http.NoBody
	c.failure = fmt.Errorf("the collector answers %d", resp.StatusCode)
	return resp, nil
}

// close ends connections that wait for the next batch.
func (c *courier) close() {
	if idle, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

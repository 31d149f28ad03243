package otlp

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// mostAnswer is how many bytes of an answer are read, so that the connection can be reused.
const mostAnswer = 64 << 10

// courier sends the exporter's requests to the collector. The exporter's errors quote the collector's address and its
// answer, which may both contain secrets. So the courier hides the answer from it, and notes the failure itself.
type courier struct {
	settings  Settings
	transport http.RoundTripper
	failure   error // of the last request, which belongs to the only export at that time
}

func newCourier(s Settings) *courier {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	return &courier{settings: s, transport: transport}
}

// RoundTrip implements [http.RoundTripper].
func (c *courier) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), c.settings.timeout)
	defer cancel()
	r = r.Clone(ctx)
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

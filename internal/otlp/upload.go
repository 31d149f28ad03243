package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/delaytask/delaytask/processor"
)

const (
	mostTries  = 5
	mostAnswer = 64 << 10 // bytes that are read so that the connection can be used again
)

var backoff = processor.Exponential(time.Second, 8*time.Second, 0.2)

// client posts batches of spans. It is the otlptrace.Client of the exporter.
type client struct {
	settings  Settings
	agent     string
	transport http.RoundTripper // no http.Client: that would follow redirects with our headers, and quote the URL in its errors
	ended     context.Context   // when it ends, so does every upload
	abandon   context.CancelFunc
}

func newClient(s Settings, agent string) *client {
	c := &client{
		settings: s, agent: agent,
		transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			TLSClientConfig:     s.tls,
			TLSHandshakeTimeout: s.timeout,
			ForceAttemptHTTP2:   true, // a TLS configuration of one's own turns it off otherwise
			IdleConnTimeout:     90 * time.Second,
		},
	}
	c.ended, c.abandon = context.WithCancel(context.Background())
	return c
}

// Start implements otlptrace.Client. Nothing is dialled before there are spans.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.abandon()
	if idle, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
	return nil
}

// UploadTraces implements otlptrace.Client. It tries again while the collector says that it cannot take the spans now, as long as
// ctx lasts and at most mostTries times.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := c.encode(spans)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ended, cancel)()
	for try := 1; ; try++ {
		again, err := c.post(ctx, body)
		if again == never || try == mostTries {
			return err
		}
		wait := max(again, backoff(try))
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// encode writes TracesData, whose bytes are those of an ExportTraceServiceRequest; the package of the latter brings gRPC along.
func (c *client) encode(spans []*tracepb.ResourceSpans) ([]byte, error) {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil || !c.settings.gzip {
		return body, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(body) // a buffer takes everything
	err = w.Close()
	return packed.Bytes(), err
}

// never means that sending once more would not help.
const never = time.Duration(-1)

// post sends a batch once. After an error it says when to try again at the earliest.
func (c *client) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.settings.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.settings.to.String(), bytes.NewReader(body))
	if err != nil {
		return never, fmt.Errorf("make a request: %T", err) // its text would quote the URL
	}
	req.Header = c.settings.header.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.agent)
	}
	if c.settings.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	// Spans that come twice are one span. The empty key, which is not sent, lets the transport repeat a request at once whose idle
	// connection was being closed by the collector.
	req.Header["Idempotency-Key"] = nil
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return never, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, mostAnswer)) // what it says besides may quote what it was sent
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return never, nil
	}
	err = fmt.Errorf("the collector answers %d", resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(resp.Header, time.Now()), err
	}
	return never, err
}

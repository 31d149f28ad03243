// Package servertest is what the tests of `delaytask serve` share: a client that sends requests and reads answers, a
// scheduler on a database of its own, and waiting for what happens in the end. Only tests import it.
package servertest

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

// Client sends requests to a service.
type Client struct {
	TB   testing.TB
	URL  string
	Host string            // that requests ask for; "": the URL's
	Via  http.RoundTripper // default: a connection to this machine, whatever the URL calls it
}

// Answer is what a service has said, and the problem that it is when it is one.
type Answer struct {
	wire.Problem
	Status int
	Header http.Header
	Text   string
}

// dialed reaches this machine under every name, because not every hosts file knows localhost.
var dialed = &http.Transport{
	DisableKeepAlives: true, // no connection outlives its test
	DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	},
}

// Inside returns a client of a handler that is called without a connection.
func Inside(t testing.TB, h http.Handler) Client {
	return Client{TB: t, URL: "http://localhost", Via: inside{h}}
}

type inside struct{ http.Handler }

func (h inside) RoundTrip(r *http.Request) (*http.Response, error) {
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), r.Body)
	in.Host, in.Header, in.ContentLength = r.Host, r.Header, r.ContentLength
	if in.ContentLength == 0 && r.Body != nil && r.Body != http.NoBody {
		in.ContentLength = -1 // a client does not know it, and a server says so
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	return w.Result(), nil
}

// Request makes a request, with headers in pairs: one that comes twice is sent twice, an empty one is not sent. A body
// is JSON unless they say otherwise.
func (c *Client) Request(method, path string, body io.Reader, header ...string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(c.TB.Context(), method, c.URL+path, body)
	if err != nil {
		return nil, err
	}
	if c.Host != "" {
		r.Host = c.Host
	}
	if r.Body != nil && r.Body != http.NoBody && !slices.Contains(header, "Content-Type") {
		r.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(header, 2) {
		if pair[1] != "" {
			r.Header.Add(pair[0], pair[1])
		}
	}
	return r, nil
}

// Send returns the answer to a request. A problem must be whole.
func (c *Client) Send(r *http.Request) (a Answer, err error) {
	var via http.RoundTripper = dialed
	if c.Via != nil {
		via = c.Via
	}
	res, err := via.RoundTrip(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	a = Answer{Status: res.StatusCode, Header: res.Header, Text: string(text)}
	if err == nil && res.Header.Get("Content-Type") == "application/problem+json" {
		err = json.Unmarshal(text, &a.Problem)
		if p := a.Problem; err != nil || p.Status != a.Status || p.Title == "" || p.Code == "" || p.Detail == "" {
			c.TB.Errorf("%s %.80s: %d without a whole problem: %.300s (%v)", r.Method, r.URL, a.Status, text, err)
		}
	}
	return a, err
}

// Try sends a request to a service that may be gone. It is for other goroutines than the test's own, too.
func (c *Client) Try(method, path, body string, header ...string) (Answer, error) {
	r, err := c.Request(method, path, strings.NewReader(body), header...)
	if err != nil {
		return Answer{}, err
	}
	return c.Send(r)
}

func (c *Client) Call(method, path, body string, header ...string) Answer {
	c.TB.Helper()
	a, err := c.Try(method, path, body, header...)
	if err != nil {
		c.TB.Fatal(err)
	}
	return a
}

// Want sends a request whose answer must have the status, and the code of a problem; "" means no problem.
func (c *Client) Want(status int, code, method, path, body string, header ...string) Answer {
	c.TB.Helper()
	a := c.Call(method, path, body, header...)
	if a.Status != status || a.Code != code || status == http.StatusNoContent && a.Text != "" {
		c.TB.Errorf("%s %.120s %.120s: %d %.400s, want %d %s", method, path, body, a.Status, a.Text, status, code)
	}
	return a
}

func Ask[T any](c *Client, status int, method, path, body string, header ...string) (v T) {
	c.TB.Helper()
	a := c.Call(method, path, body, header...)
	if a.Status != status {
		c.TB.Fatalf("%s %.120s %.120s: %d %.400s, want %d", method, path, body, a.Status, a.Text, status)
	}
	a.Read(c.TB, &v)
	return v
}

func (a Answer) Read(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Text), v); err != nil {
		t.Fatalf("answered %.400s: %v", a.Text, err)
	}
}

func (c *Client) Save(body string) wire.Saved {
	c.TB.Helper()
	return Ask[wire.Saved](c, http.StatusCreated, "POST", "/v1/tasks", body)
}

// Pop takes one task of the tag, and waits for it. More parameters may follow, as &ttr=1m.
func (c *Client) Pop(tag, more string) wire.Popped {
	c.TB.Helper()
	popped := Ask[wire.PopReply](c, http.StatusOK, "POST", "/v1/tags/"+tag+"/pop?wait=30s"+more, "").Tasks
	if len(popped) != 1 {
		c.TB.Fatalf("popped %d tasks", len(popped))
	}
	return popped[0]
}

func (c *Client) Task(id wire.ID) wire.Task {
	c.TB.Helper()
	return Ask[wire.Task](c, http.StatusOK, "GET", "/v1/tasks/"+id.String(), "")
}

// AwaitServed waits until a node serves the tag, as it does while a pop waits there.
func (c *Client) AwaitServed(tag string) {
	c.TB.Helper()
	Eventually(c.TB, "a node serves "+tag, func() bool {
		nodes := Ask[wire.NodeList](c, http.StatusOK, "GET", "/v1/nodes", "").Nodes
		return slices.ContainsFunc(nodes, func(n wire.Node) bool { return slices.Contains(n.Tags, tag) })
	})
}

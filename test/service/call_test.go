package service

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

// caller calls this machine whatever name it is given, because not every hosts file knows localhost.
var caller = http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
}}}

// answer is what a server said.
type answer struct {
	status int
	header http.Header
	text   string
}

// call sends JSON. headers are pairs of a name and a value.
func (s *server) call(method, path, body string, headers ...string) answer {
	s.t.Helper()
	a, err := s.try(method, path, body, headers...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// try is call for a server that may be gone, and for goroutines besides the test's own.
func (s *server) try(method, path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Host = s.host
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := caller.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text)}, err
}

// as reads the answer, which must have the status.
func as[T any](t *testing.T, a answer, status int) (v T) {
	t.Helper()
	if a.status != status {
		t.Fatalf("answered %d, want %d: %s", a.status, status, a.text)
	}
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		t.Fatalf("answered %s: %v", a.text, err)
	}
	return v
}

// wants checks the status, and the code of a problem.
func (a answer) wants(t *testing.T, status int, code string) {
	t.Helper()
	var p wire.Problem
	if status >= 400 && a.header.Get("Content-Type") == "application/problem+json" {
		if err := json.Unmarshal([]byte(a.text), &p); err != nil {
			t.Errorf("answered %s: %v", a.text, err)
		}
	}
	if a.status != status || p.Code != code {
		t.Errorf("answered %d %s, want %d %s: %s", a.status, p.Code, status, code, a.text)
	}
}

func (s *server) save(body string) wire.Saved {
	s.t.Helper()
	return as[wire.Saved](s.t, s.call("POST", "/v1/tasks", body), 201)
}

// pop wants tasks and returns them.
func (s *server) pop(path string) []wire.Popped {
	s.t.Helper()
	return as[wire.PopReply](s.t, s.call("POST", path, ""), 200).Tasks
}

func (s *server) finish(task wire.Popped) answer {
	s.t.Helper()
	return s.call("POST", "/v1/tasks/"+task.ID.String()+"/finish", `{"token":"`+task.Token+`"}`)
}

func (s *server) task(id wire.ID) wire.Task {
	s.t.Helper()
	return as[wire.Task](s.t, s.call("GET", "/v1/tasks/"+id.String(), ""), 200)
}

// awaits waits until somebody serves the tag, as a pop that has arrived does.
func (s *server) awaits(tag string) {
	s.t.Helper()
	eventually(s.t, "somebody serves "+tag, func() bool {
		nodes := as[wire.NodeList](s.t, s.call("GET", "/v1/nodes", ""), 200).Nodes
		return slices.ContainsFunc(nodes, func(n wire.Node) bool { return slices.Contains(n.Tags, tag) })
	})
}

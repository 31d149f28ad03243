package api

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// table reads the rows of a site by SQL.
type table struct {
	site *site
	db   *sql.DB
}

// fuzzed is a site whose table is empty before each request.
func fuzzed(f *testing.F) table {
	f.Helper()
	s := newSite(f)
	return table{s, servertest.SQL(f, s.dsn)}
}

// holds sends a request. It requires a success or a problem with a code, and that a refused request stores nothing.
func (tb table) holds(t *testing.T, r *http.Request) {
	t.Helper()
	w := httptest.NewRecorder()
	tb.site.api.ServeHTTP(w, r)
	var rows int
	servertest.OK(t, tb.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM delay_task_message").Scan(&rows))
	if rows > 0 {
		if _, err := tb.db.ExecContext(t.Context(), "DELETE FROM delay_task_message"); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case w.Code >= 200 && w.Code < 300:
		if text := w.Body.Bytes(); len(text) > 0 && !json.Valid(text) {
			t.Fatalf("%d with %q", w.Code, text)
		}
	case w.Code >= 400 && w.Code < 500:
		var p wire.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Detail == "" ||
			p.Status != w.Code {
			t.Fatalf("%d without a problem: %q (%v)", w.Code, w.Body, err)
		}
		if rows > 0 {
			t.Fatalf("%d %s stored %d rows", w.Code, p.Code, rows)
		}
	default:
		t.Fatalf("%s %s: %d %s\n%s", r.Method, r.URL, w.Code, w.Body, tb.site.logged)
	}
}

func (tb table) post(t *testing.T, method, target, media string, body []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(string(body)))
	r.Host = "localhost"
	r.Header.Set("Content-Type", media)
	tb.holds(t, r)
}

func FuzzSave(f *testing.F) {
	for _, b := range badSaves() {
		for _, request := range b.requests {
			f.Add([]byte(strings.TrimPrefix(request, "POST /v1/tasks ")))
		}
	}
	f.Add([]byte(`{"tag":"t","app":"a","body":[1,{"x":"\u00e9"}],"delay":"1h","key":"k","ttr":1000,
		"max_attempts":3,"priority":1,
		"headers":{"a":"b"},"max_lateness":"1s","late_policy":"run"}`))
	f.Add([]byte(`{"tag":"t","at":"2037-01-01T00:00:00Z","no_attempt_limit":true,"id":"911763588963419769"}`))
	tb := fuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) { tb.post(t, "POST", "/v1/tasks", mediaJSON, body) })
}

func FuzzChange(f *testing.F) {
	for _, body := range []string{`{}`, `{"delay":"1h"}`, `{"at":"2037-01-01T00:00:00Z","body":null}`,
		`{"body":{"a":1}}`, `{"delay":1,"delay":2}`, `null`, `[`} {
		f.Add([]byte(body))
	}
	tb := fuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		tb.post(t, "PATCH", "/v1/tasks/1", mediaJSON, body)
		for _, verb := range []string{"finish", "touch", "release", "fail"} {
			tb.post(t, "POST", "/v1/tasks/1/"+verb, mediaJSON, body)
		}
		tb.post(t, "POST", "/v1/tasks/finish", mediaJSON, body)
	})
}

func FuzzBatch(f *testing.F) {
	for _, body := range []string{
		`[]`, `[{"tag":"t"},{"tag":"t","body":1}]`, `[{"tag":"t"},null]`, `[{"tag":"t"}`, `[[]]`, `{"tag":"t"}`,
		`[{"tag":"t"}]x`,
		"", "\n", "{\"tag\":\"t\"}\r\n\r\n{\"tag\":\"t\",\"body\":1}\n", "{\"tag\":\"t\"}\nnull", "{\"tag\":\"t\"} {}",
		"\x00\n",
	} {
		f.Add([]byte(body))
	}
	tb := fuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		tb.post(t, "POST", batchPath, mediaJSON, body)
		tb.post(t, "POST", batchPath, mediaNDJSON, body)
	})
}

func FuzzList(f *testing.F) {
	f.Add("t", "pending", "k", "2037-01-01T00:00:00Z", "AAAAAAAAAAEAAAAAAAAAAA", "3")
	f.Add("", "", "", "", "x", "-1")
	tb := fuzzed(f)
	f.Fuzz(func(t *testing.T, tag, status, key, before, cursor, limit string) {
		q := url.Values{}
		for name, value := range map[string]string{
			"tag": tag, "status": status, "key": key, "due_before": before, "cursor": cursor, "limit": limit,
		} {
			if value != "" {
				q.Set(name, value)
			}
		}
		tb.post(t, "GET", "/v1/tasks?"+q.Encode(), mediaJSON, nil)
	})
}

func FuzzPop(f *testing.F) {
	for _, query := range []string{"", "max=1&wait=0&ttr=1m", "max=0", "wait=-1", "tag=a&tag=b", "ttr=%zz",
		"max=1;wait=1", "max=1&max=2", "=", "&&", "wait=1e9"} {
		f.Add("t", query)
	}
	f.Add("a/b", "")
	f.Add("..", "max=2")
	tb := fuzzed(f)
	f.Fuzz(func(t *testing.T, tag, query string) {
		if q, err := url.ParseQuery(query); err == nil && q.Get("wait") != "" {
			q.Set("wait", "0"+strings.TrimLeft(q.Get("wait"), "0123456789.")) // long waits are served, and take long
			query = q.Encode()
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/pop", nil)
		r.Host = "localhost"
		r.URL.RawQuery = query
		tb.holds(t, r)
		one := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/tags/"+url.PathEscape(tag)+"/pop", nil)
		one.Host, one.URL.RawQuery = "localhost", query
		if !strings.Contains(query, "tag=") {
			tb.holds(t, one)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	for _, h := range []string{
		"Content-Type: application/json", "Content-Type: application/x-ndjson;charset=utf-16", "Content-Encoding: gzip",
		"Authorization: Bearer x",
		"Idempotency-Key: k", "Accept: text/html;q=0.1, */*", "Accept: application/cbor", "Origin: null",
		"Sec-Fetch-Site: cross-site",
		"If-Match: *", "Content-Type: application/json\nContent-Type: text/plain", "Expect: 100-continue",
		"Accept: ;;;", "Prefer: return=minimal",
	} {
		f.Add("POST", "/v1/tasks", h)
	}
	f.Add("PATCH", "/v1/tags/t/keys/%2f", "X: y")
	f.Add("BREW", "/v1/tags/%ff/pause", "Host: evil")
	f.Add("TRACE", "*", "")
	tb := fuzzed(f)
	f.Fuzz(func(t *testing.T, method, target, headers string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.HasSuffix(u.Path, "/pop") || strings.HasPrefix(u.Path, "/docs") ||
			strings.HasSuffix(u.Path, "z") {
			return // no server reads it, or it is no JSON
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(`{"tag":"t"}`))
		r.Method, r.URL, r.RequestURI, r.Host = method, u, target, "localhost"
		for line := range strings.SplitSeq(headers, "\n") {
			name, value, _ := strings.Cut(line, ":")
			r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
		tb.holds(t, r)
	})
}

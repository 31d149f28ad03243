package webhook

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/processor"
)

func TestRequestIsParsed(t *testing.T) {
	t.Parallel()
	f := func(text, method, wantURL, contentType, body string) {
		t.Helper()
		call, err := ParseRequest([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		gotType := call.Header.Get("Content-Type")
		if call.Method != method || call.URL != wantURL || string(call.Body) != body || gotType != contentType {
			t.Errorf("%s:\ngot %s %s, %q of %q", text, call.Method, call.URL, call.Body, gotType)
		}
	}
	f(`{"url":"https://h/a"}`, "POST", "https://h/a", "", "")
	f(`{"url":"https://h/a","method":"get","unknown":[1]}`, "GET", "https://h/a", "", "")
	f(`{"url":"https://h/a?x=1","method":"Get","body":{"b":"ä &","a":[1,true],"c":{"d":null},"n":12345678901}}`, "GET",
		"https://h/a?x=1&a=1&a=true&b=%C3%A4+%26&c=%7B%22d%22%3Anull%7D&n=12345678901", "", "")
	f(`{"url":"https://h/a","method":"DELETE","body":"b=2&a=1"}`, "DELETE", "https://h/a?a=1&b=2", "", "")
	f(`{"url":"https://h/a","method":"get","body":{}}`, "GET", "https://h/a", "", "")
	f(`{"url":"https://h/a","method":"post","body":{"a": 1.50}}`, "POST", "https://h/a", "application/json",
		`{"a": 1.50}`)
	f(`{"url":"https://h/a","body":[1]}`, "POST", "https://h/a", "application/json", `[1]`)
	f(`{"url":"https://h/a","body":null}`, "POST", "https://h/a", "", "")
	f(`{"url":"https://h/a","method":"put","body":"a\nb"}`, "PUT", "https://h/a", "text/plain; charset=utf-8", "a\nb")
	f(`{"url":"https://h/a","method":"patch","headers":{"content-type":"text/csv"},"body":"a,b"}`, "PATCH",
		"https://h/a",
		"text/csv", "a,b")
	f(`{"url":"https://h/a","headers":{"Content-Type":"application/vnd.x+json"},"body":{"a":1}}`, "POST", "https://h/a",
		"application/vnd.x+json", `{"a":1}`)
	f(`{"url":"https://h/a","headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":{"a":"1 2","b":3}}`,
		"POST",
		"https://h/a", "application/x-www-form-urlencoded", "a=1+2&b=3")

	call, err := ParseRequest([]byte(`{"url":"https://h/","headers":{"X-N":12345678901,"X-B":true,
		"authorization":"Bearer x"},		"passrule":{"code":1},"passstatus":[200,404]}`))
	mustOK(t, err)
	for name, want := range map[string]string{"X-N": "12345678901", "X-B": "true", "Authorization": "Bearer x"} {
		if got := call.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if len(call.Statuses) != 2 || call.Rule.mismatch([]byte(`{"code":2}`)) == "" {
		t.Errorf("statuses %v, rule %v", call.Statuses, call.Rule)
	}
}

var badRequests = []struct {
	text string
	want error
}{
	{``, ErrInvalidRequest}, {`null`, ErrInvalidURL}, {`"canary"`, ErrInvalidRequest}, {`[]`, ErrInvalidRequest},
	{`{"url":"https://h/"} canary`, ErrInvalidRequest}, {`{"url":5}`, ErrInvalidRequest}, {`{}`, ErrInvalidURL},
	{`{"url":"file:///canary"}`, ErrInvalidURL}, {`{"url":"https://canary@h/"}`, ErrInvalidURL},
	{`{"url":"https://h/","method":"canary"}`, ErrInvalidRequest},
	{`{"url":"https://h/","method":"connect"}`, ErrInvalidRequest},
	{`{"url":"https://h/","method":1}`, ErrInvalidRequest},
	{`{"url":"https://h/","headers":[]}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"A":["canary"]}}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"A":null}}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"Host":"canary"}}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"A":"b\r\nX: canary"}}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"A\r\nX":"canary"}}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"x-a":"1","X-A":"2"}}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"":"canary"}}`, ErrInvalidHeader},
	{`{"url":"https://h/","headers":{"webhook-signature":"v1,canary"}}`, ErrInvalidHeader},
	{`{"url":"https://h/","passrule":"canary"}`, ErrInvalidRequest},
	{`{"url":"https://h/","passrule":[1]}`, ErrInvalidRequest},
	{`{"url":"https://h/","passrule":1}`, ErrInvalidRequest},
	{`{"url":"https://h/","passrule":true}`, ErrInvalidRequest},
	{`{"url":"https://h/","passstatus":[99]}`, ErrInvalidRequest},
	{`{"url":"https://h/","passstatus":200}`, ErrInvalidRequest},
	{`{"url":"https://h/","method":"get","body":[1]}`, ErrInvalidRequest},
	{`{"url":"https://h/","method":"get","body":5}`, ErrInvalidRequest},
	{`{"url":"https://h/","method":"get","body":"%zz"}`, ErrInvalidRequest},
	{`{"url":"https://h/","method":"get","body":{"a":"` + strings.Repeat("a", maxURL) + `"}}`, ErrInvalidURL},
}

func TestBadRequestFailsTheTaskAtOnce(t *testing.T) {
	t.Parallel()
	p := newClient(t, nil).HTTP()
	for _, tt := range badRequests {
		_, err := ParseRequest([]byte(tt.text))
		if !errors.Is(err, tt.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.80s: got %v, want %v", tt.text, err, tt.want)
		}
		task := someTask()
		task.Body = []byte(tt.text)
		err = p.Process(t.Context(), task)
		if _, ok := errors.AsType[*processor.PermanentError](err); !ok || !errors.Is(err, tt.want) {
			t.Errorf("%.80s: the task got %v, want %v for good", tt.text, err, tt.want)
		}
	}
	task := someTask()
	task.Body = []byte(`{"url":"https://10.0.0.1/"}`)
	err := p.Process(t.Context(), task)
	if _, ok := errors.AsType[*processor.PermanentError](err); !ok || !errors.Is(err, ErrBlockedURL) {
		t.Errorf("a blocked address: got %v", err)
	}
}

func TestNameThatLeadsToABlockedAddressIsTriedAgain(t *testing.T) {
	t.Parallel()
	client := newClient(t, func(cfg *Config) {
		cfg.Guard = newGuard(t, GuardConfig{Resolver: fakeDNS(func(string) []string { return []string{"127.0.0.1"} })})
	})
	task := someTask()
	task.Body = []byte(`{"url":"https://` + freshName() + `/"}`)
	err := client.HTTP().Process(t.Context(), task)
	if !errors.Is(err, ErrBlockedURL) || !strings.Contains(err.Error(), "allow list") {
		t.Errorf("got %v", err)
	}
	if _, ok := errors.AsType[*processor.PermanentError](err); ok {
		t.Error("the task would fail at once")
	}
}

func TestHTTPTaskIsSentAndJudged(t *testing.T) {
	t.Parallel()
	answer := make(chan string, 1)
	secret := NewSecret()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"order":7}` || r.Method != http.MethodPost || r.Header.Get("X-Shop") != "a" {
			t.Errorf("got %s %q %v, %v", r.Method, body, r.Header, err)
		}
		if r.Header.Get("Webhook-Signature") == "" {
			t.Error("the call is not signed")
		}
		_, _ = io.WriteString(w, <-answer)
	})
	task := someTask()
	task.Body = []byte(`{"url":"` + server.URL + `/cb","method":"post","headers":{"X-Shop":"a"},"body":{"order":7},
		"passrule":{"code":1}}`)
	p := newClient(t, nil).HTTP(secret)

	answer <- `{"code":1,"message":"closed"}`
	if err := p.Process(t.Context(), task); err != nil {
		t.Errorf("a matching answer: %v", err)
	}
	answer <- `{"code":2,"message":"canary"}`
	err := p.Process(t.Context(), task)
	mismatch, ok := errors.AsType[*MismatchError](err)
	if !ok || !errors.Is(err, ErrMismatch) || mismatch.Status != 200 {
		t.Errorf("another answer: got %v, want a mismatch", err)
	} else if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error shows the answer: %v", err)
	}
}

// A parsed request can be sent: the URL and the headers pass the checks that come before a call.
func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"url":"https://h/a?x=1","method":"get","headers":{"A":"b"},` +
		`"body":{"a":[1,{"b":null}]},"passrule":{"code":1}}`))
	f.Add([]byte(`{"url":"https://[::1]:80/","body":"a=b","passstatus":[200]}`))
	for _, tt := range badRequests {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		call, err := ParseRequest(text)
		if err != nil {
			if !errors.Is(err, ErrInvalidRequest) && !errors.Is(err, ErrInvalidURL) &&
				!errors.Is(err, ErrInvalidHeader) {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		target, err := parseURL(call.URL)
		if err != nil {
			t.Fatalf("the URL %q: %v", call.URL, err)
		}
		client := &Client{cfg: Config{UserAgent: "fuzz"}}
		req, err := client.newRequest(t.Context(), someTask(), call, target)
		if err != nil {
			t.Fatalf("the request: %v", err)
		}
		if again, err := url.Parse(req.URL.String()); err != nil || again.Host != req.URL.Host {
			t.Fatalf("%q leads to another host than %q: %v", req.URL, req.URL.Host, err)
		}
	})
}

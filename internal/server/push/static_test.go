package push

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// process lets the receiver process a task whose body is given, and returns what its address was called with, too.
func (s Static) process(t *testing.T, body string, status int, answer string) (called *http.Request, sent string,
	err error) {
	t.Helper()
	s.Tag, s.URL = "t", servertest.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		called, sent = r, r.Method+" "+r.RequestURI+" "+string(text)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})+"/hook?a=1"
	p, err := s.Processor(newClient(t, slog.New(slog.DiscardHandler)))
	servertest.OK(t, err)
	task := someTask()
	task.Body = []byte(body)
	err = p.Process(t.Context(), task)
	return called, sent, err
}

func TestStaticReceiverIsCalled(t *testing.T) {
	t.Parallel()
	f := func(s Static, body, want string) http.Header {
		t.Helper()
		called, sent, err := s.process(t, body, 200, "")
		if err != nil || sent != want {
			t.Fatalf("called %s, %v, want %s", sent, err, want)
		}
		return called.Header
	}
	h := f(Static{Secrets: []webhook.Secret{webhook.NewSecret()}, Header: http.Header{"x-own": {"yes"}}}, `{"b":2}`,
		`POST /hook?a=1 {"b":2}`)
	if h.Get("Content-Type") != "application/json" || h.Get("X-Own") != "yes" || h.Get("Webhook-Signature") == "" ||
		h.Get("Delaytask-Token") != "42.7" {
		t.Errorf("headers %v", h)
	}
	h = f(Static{Header: http.Header{"content-type": {"application/xml"}}}, `<a/>`, `POST /hook?a=1 <a/>`)
	if got := h.Values("Content-Type"); len(got) != 1 || got[0] != "application/xml" {
		t.Errorf("content types %q", got)
	}
	f(Static{Method: "put"}, `hello`, `PUT /hook?a=1 hello`)
	f(Static{Method: "get"}, `{"b":2,"c":"d e"}`, `GET /hook?a=1&b=2&c=d+e `)
	f(Static{Method: "delete"}, `b=2`, `DELETE /hook?a=1&b=2 `)
	f(Static{Method: "get"}, ``, `GET /hook?a=1 `)
}

func TestStaticReceiversAnswerIsJudged(t *testing.T) {
	t.Parallel()
	rule, err := webhook.ParseRule([]byte(`{"code":1}`))
	servertest.OK(t, err)
	f := func(s Static, status int, answer string, done, handedOver bool) {
		t.Helper()
		_, _, err := s.process(t, "{}", status, answer)
		if _, over := errors.AsType[*processor.HandOverError](err); over != handedOver || done != (err == nil) {
			t.Errorf("%d %s: got %v", status, answer, err)
		}
	}
	f(Static{Rule: rule}, 200, `{"code":1}`, true, false)
	f(Static{Rule: rule}, 200, `{"code":0}`, false, false)
	f(Static{}, 202, ``, true, false)
	f(Static{Later: true}, 202, ``, false, true)
	f(Static{Later: true}, 200, ``, true, false)
	f(Static{Statuses: []int{404}}, 404, ``, true, false)
}

func TestStaticReceiverThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	client := newClient(t, slog.New(slog.DiscardHandler))
	f := func(s Static, want error) {
		t.Helper()
		if p, err := s.Processor(client); !errors.Is(err, want) || p != nil {
			t.Errorf("%+v: got %v, want %v", s, err, want)
		}
	}
	f(Static{Tag: "a b", URL: "http://127.0.0.1/"}, delaytask.ErrInvalidTag)
	f(Static{Tag: "t", URL: "http://10.0.0.1/"}, webhook.ErrBlockedURL)
	f(Static{Tag: "t", URL: "nowhere", Method: "get"}, webhook.ErrInvalidURL)
	for _, body := range []string{"[1]", "\xff"} {
		_, _, err := Static{Method: "get"}.process(t, body, 200, "")
		if _, permanent := errors.AsType[*processor.PermanentError](err); !permanent {
			t.Errorf("%q: got %v, want a permanent error", body, err)
		}
	}
}

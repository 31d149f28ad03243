package push

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

func TestStaticWorkerIsCalled(t *testing.T) {
	t.Parallel()
	client := newClient(t, slog.New(slog.DiscardHandler))
	f := func(s Static, body, want string) *http.Request {
		t.Helper()
		called := make(chan *http.Request, 1)
		var got string
		s.Tag, s.URL = "t", listen(t, func(_ http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got = r.Method + " " + r.RequestURI + " " + string(text)
			called <- r
		})+"/hook?a=1"
		p, err := s.Processor(client)
		if err != nil {
			t.Fatal(err)
		}
		task := someTask()
		task.Body = []byte(body)
		if err := p.Process(t.Context(), task); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		r := <-called
		if got != want {
			t.Errorf("called %s, want %s", got, want)
		}
		return r
	}
	r := f(Static{Secrets: []webhook.Secret{webhook.NewSecret()}, Header: http.Header{"x-own": {"yes"}}}, `{"b":2}`,
		`POST /hook?a=1 {"b":2}`)
	if h := r.Header; h.Get("Content-Type") != "application/json" || h.Get("X-Own") != "yes" || h.Get("Webhook-Signature") == "" ||
		h.Get("Delaytask-Token") != "42.7" {
		t.Errorf("headers %v", h)
	}
	r = f(Static{Header: http.Header{"content-type": {"application/xml"}}}, `<a/>`, `POST /hook?a=1 <a/>`)
	if got := r.Header.Values("Content-Type"); len(got) != 1 || got[0] != "application/xml" {
		t.Errorf("content types %q", got)
	}
	f(Static{Method: "put"}, `hello`, `PUT /hook?a=1 hello`)
	f(Static{Method: "get"}, `{"b":2,"c":"d e"}`, `GET /hook?a=1&b=2&c=d+e `)
	f(Static{Method: "delete"}, `b=2`, `DELETE /hook?a=1&b=2 `)
	f(Static{Method: "get"}, ``, `GET /hook?a=1 `)
}

func TestStaticWorkersAnswerIsJudged(t *testing.T) {
	t.Parallel()
	client := newClient(t, slog.New(slog.DiscardHandler))
	rule, err := webhook.ParseRule([]byte(`{"code":1}`))
	if err != nil {
		t.Fatal(err)
	}
	f := func(s Static, status int, answer string, want func(error) bool) {
		t.Helper()
		s.Tag, s.URL = "t", listen(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
		})
		p, err := s.Processor(client)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Process(t.Context(), someTask()); !want(err) {
			t.Errorf("%d %s: got %v", status, answer, err)
		}
	}
	done := func(err error) bool { return err == nil }
	failed := func(err error) bool { return err != nil }
	handedOver := func(err error) bool {
		_, ok := errors.AsType[*processor.HandOverError](err)
		return ok
	}
	f(Static{Rule: rule}, 200, `{"code":1}`, done)
	f(Static{Rule: rule}, 200, `{"code":0}`, failed)
	f(Static{}, 202, ``, done)
	f(Static{Later: true}, 202, ``, handedOver)
	f(Static{Later: true}, 200, ``, done)
	f(Static{}, 404, ``, failed)
	f(Static{Statuses: []int{404}}, 404, ``, done)
}

func TestStaticWorkerThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	client := newClient(t, slog.New(slog.DiscardHandler))
	f := func(s Static, want error) {
		t.Helper()
		if p, err := s.Processor(client); !errors.Is(err, want) || p != nil {
			t.Errorf("%+v: got %v, want %v", s, err, want)
		}
	}
	f(Static{Tag: "a b", URL: "http://127.0.0.1/"}, processor.ErrInvalidTag)
	f(Static{Tag: "t", URL: "http://10.0.0.1/"}, webhook.ErrBlockedURL)
	f(Static{Tag: "t", URL: "nowhere", Method: "get"}, webhook.ErrInvalidURL)

	p, err := Static{Tag: "t", URL: "http://127.0.0.1/", Method: "get"}.Processor(client)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"[1]", "\xff"} {
		task := someTask()
		task.Body = []byte(body)
		err := p.Process(t.Context(), task)
		if _, permanent := errors.AsType[*processor.PermanentError](err); !permanent {
			t.Errorf("%q: got %v, want a permanent error", body, err)
		}
	}
}

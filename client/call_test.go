package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestCodesAreTheErrorsOfTheLibrary(t *testing.T) {
	t.Parallel()
	f := func(code string, want error) {
		t.Helper()
		err := fmt.Errorf("op: %w", &Error{Status: 409, Code: code, Detail: "d", TaskID: 5})
		if want != nil && !errors.Is(err, want) {
			t.Errorf("%s is not %v", code, want)
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != code || e.Error() != "d" {
			t.Errorf("%s: got %v", code, err)
		}
	}
	f(wire.CodeLeaseLost, delaytask.ErrLeaseLost)
	f(wire.CodeDuplicate, delaytask.ErrDuplicate)
	f("of_a_later_version", nil)
	duplicate, ok := errors.AsType[*delaytask.DuplicateError](&Error{Code: wire.CodeDuplicate, TaskID: 5})
	if !ok || duplicate.ID != 5 {
		t.Errorf("got %v", duplicate)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with the token %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for name, opts := range map[string][]Option{"own": nil, "given": {WithHTTPClient(elsewhere.Client())}} {
		t.Run(name, func(t *testing.T) {
			c, s := scripted(t, opts, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/"+canary, http.StatusTemporaryRedirect)
			})
			_, err := c.Get(t.Context(), delaytask.ID(1))
			if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusTemporaryRedirect ||
				!strings.Contains(err.Error(), "redirect") {
				t.Errorf("got %v", err)
			}
			if len(s.requests()) != 1 {
				t.Errorf("%d requests", len(s.requests()))
			}
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"tag":"`)
		for chunk := strings.Repeat("x", 1<<16); ; {
			if _, err := io.WriteString(w, chunk); err != nil {
				return // the client has hung up
			}
		}
	})
	if _, err := c.Get(t.Context(), delaytask.ID(1)); !errors.Is(err, ErrAnswerTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestAnswersThatAreNotTheServices(t *testing.T) {
	t.Parallel()
	f := func(answer http.HandlerFunc, want string) {
		t.Helper()
		c, _ := scripted(t, []Option{WithRetryFor(0)}, answer)
		task, err := c.Get(t.Context(), delaytask.ID(1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v, want an error with %q", task, err, want)
		}
	}
	page := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<h1>a proxy's page</h1>")
		}
	}
	f(page(200), "not one of this service")
	f(page(404), "404 Not Found")
	f(page(502), "502 Bad Gateway")
	f(says(200, []int{1}), "not one of this service")
	f(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(418)
		_, _ = io.WriteString(w, `{"code":`)
	}, "418")
}

func TestWhatMayHaveHappenedIsNotRepeated(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*Client) error{
		"Cancel": func(c *Client) error { _, err := c.Cancel(context.Background(), delaytask.ID(1)); return err },
		"Reschedule": func(c *Client) error {
			_, err := c.Reschedule(context.Background(), delaytask.ID(1), time.Hour)
			return err
		},
		"Retry": func(c *Client) error { return c.Retry(context.Background(), delaytask.ID(1)) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, answer := range []http.HandlerFunc{lost, says(502, nil), refuses(503, wire.CodeUnavailable),
				refuses(500, wire.CodeInternal)} {
				c, s := scripted(t, nil, answer)
				if err := call(c); !errors.Is(err, ErrNoAnswer) || len(s.requests()) != 1 {
					t.Errorf("got %v after %d requests", err, len(s.requests()))
				}
			}
			c, s := scripted(t, nil, refuses(503, wire.CodeOverloaded), refuses(409, wire.CodeFinished))
			if err := call(c); !errors.Is(err, delaytask.ErrFinished) || errors.Is(err, ErrNoAnswer) ||
				len(s.requests()) != 2 {
				t.Errorf("got %v after %d requests", err, len(s.requests()))
			}
		})
	}
}

func TestTheTokenIsSentAndNeverShown(t *testing.T) {
	t.Parallel()
	c, s := scripted(t, []Option{WithRetryFor(0), WithName("shop")}, lost, refuses(401, wire.CodeUnauthorized),
		says(500, nil))
	var shown strings.Builder
	for range 3 {
		_, err := c.SaveDelayTask(t.Context(), "a", 1, 0)
		fmt.Fprintf(&shown, "%v %+v %#v\n", err, err, err)
	}
	fmt.Fprintf(&shown, "%v %+v %#v\n", c, c, c)
	_, err := New("http://" + canary + "@127.0.0.1")
	fmt.Fprintln(&shown, err)
	_, err = New("http://127.0.0.1", WithAccessToken(canary+"\n"))
	fmt.Fprintln(&shown, err)
	if strings.Contains(shown.String(), canary) {
		t.Errorf("the token shows in\n%s", shown.String())
	}
	for _, r := range s.requests() {
		if r.auth != "Bearer "+canary {
			t.Errorf("sent %q", r.auth)
		}
	}
}

func TestNewRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "127.0.0.1:8080", "ftp://h", "http://", "http://h?x=1", "http://h#f",
		"http://u:p@h",
		"http://h:port", ":"} {
		if _, err := New(base); !errors.Is(err, delaytask.ErrInvalidOption) {
			t.Errorf("New(%q) = %v", base, err)
		}
	}
	for i, opt := range []Option{
		nil, WithAccessToken("a b"), WithAccessToken("a\r\nX: y"), WithName("a\nb"), WithHTTPClient(nil),
		WithConcurrency(0),
		WithTTR(time.Millisecond),
		WithTimeout(2 * 365 * 24 * time.Hour), WithStopGrace(0), WithRetryFor(-1), WithBodyLimit(0),
	} {
		if _, err := New("http://127.0.0.1", opt); !errors.Is(err, delaytask.ErrInvalidOption) {
			t.Errorf("option %d: %v", i, err)
		}
	}
}

func TestTagsAndKeysStayOnePartOfThePath(t *testing.T) {
	t.Parallel()
	var got []string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /base/v1/tags/{tag}/keys/{key}", func(w http.ResponseWriter, r *http.Request) {
		got = []string{wire.FromSegment(r.PathValue("tag")), wire.FromSegment(r.PathValue("key"))}
		says(200, wire.Task{ID: 1})(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c, err := New(server.URL + "/base/")
	mustOK(t, err)
	t.Cleanup(func() { _ = c.Stop(t.Context()) })
	for _, want := range [][]string{{"a", "k"}, {"a/b:c", "x/y?z#ü %2F"}, {".", ".."}, {"..", "."}, {"a", ".~~"},
		{"a", "\n"}, {"a", "+ &="}, {"-", "..."}} {
		if _, err := c.Get(t.Context(), delaytask.Key(want[0], want[1])); err != nil ||
			fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("asked for %q, the service saw %q: %v", want, got, err)
		}
	}
}

package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/delaytask/delaytask"
)

type traceKey struct{}

func TestTraceHookSeesEachCall(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/gone":
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"code":0}`)
	})
	type traced struct {
		method, host string
		status       int
		err          error
	}
	var calls []traced
	client := newClient(t, func(cfg *Config) {
		cfg.HostRate, cfg.HostBurst = 1e-6, 4
		cfg.Trace = func(ctx context.Context, method, host string) (context.Context, func(int, error)) {
			return context.WithValue(ctx, traceKey{}, "of the hook"), func(status int, err error) {
				calls = append(calls, traced{method, host, status, err})
			}
		}
		cfg.Inject = func(ctx context.Context, _ http.Header) {
			if ctx.Value(traceKey{}) != "of the hook" {
				t.Error("Inject gets another context")
			}
		}
	})
	rule, err := ParseRule([]byte(`{"code":1}`))
	mustOK(t, err)
	f := func(wantStatus int, call Call) {
		t.Helper()
		calls = nil
		_, err := client.Deliver(t.Context(), someTask(), call)
		want := traced{"POST", server.Listener.Addr().String(), wantStatus, err}
		if len(calls) != 1 || calls[0] != want {
			t.Errorf("%s: traced %+v, want %+v", call.URL, calls, want)
		}
	}
	f(200, Call{URL: server.URL})
	f(500, Call{URL: server.URL + "/broken"})
	f(200, Call{URL: server.URL, Rule: rule}) // an answer that does not satisfy it
	f(0, Call{URL: server.URL + "/gone"})

	calls = nil
	if _, err := client.Deliver(t.Context(), someTask(), Call{URL: server.URL}); !errors.Is(err, ErrHostBusy) ||
		len(calls) != 0 {
		t.Errorf("a call that is not let through: %v, traced %v", err, calls)
	}
}

func TestOneTraceIsPassedOnAndNeverTwo(t *testing.T) {
	t.Parallel()
	const own, injected, saved = "00-11111111111111111111111111111111-1111111111111111-01",
		"00-22222222222222222222222222222222-2222222222222222-01",
		"00-33333333333333333333333333333333-3333333333333333-01"
	var got []string
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = slices.Concat(r.Header["Traceparent"], r.Header["Tracestate"])
	})
	f := func(inject string, task *delaytask.Task, header http.Header, want ...string) {
		t.Helper()
		client := newClient(t, func(cfg *Config) {
			cfg.Inject = func(_ context.Context, header http.Header) {
				if inject != "" {
					header.Set("traceparent", inject)
				}
			}
		})
		if _, err := client.Deliver(t.Context(), task, Call{URL: server.URL, Header: header}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	task := someTask()
	task.Headers = map[string]string{"traceparent": saved, "tracestate": "a=b"}
	f("", task, nil, saved, "a=b")
	f(injected, task, nil, injected)
	f("", task, http.Header{"Traceparent": {own}}, own)
	f("", someTask(), nil)
}

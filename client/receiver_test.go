package client_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/config"
	serving "github.com/delaytask/delaytask/internal/service"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// caller is a whole service, which calls receivers, and a client of it.
func caller(t *testing.T) *client.Client {
	t.Helper()
	c, _ := callerAt(t)
	return c
}

// callerAt also returns the address of the service.
func callerAt(t *testing.T) (*client.Client, string) {
	t.Helper()
	cfg, log := config.Default(), slog.New(slog.DiscardHandler)
	cfg.DSN, cfg.Migrate = "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"), true
	cfg.Server.Listen, cfg.Secret = "127.0.0.1:0", "a secret of this test, long enough"
	s, err := serving.Open(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	c, err := client.New(s.URL(), client.WithLogger(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Stop(context.Background())
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c, s.URL()
}

// listening is a receiver behind an address of its own.
type listening struct {
	*client.Receiver
	*httptest.Server
}

func receive(t *testing.T, c *client.Client, p processor.Func, opts ...client.ReceiverOption) listening {
	t.Helper()
	var r *client.Receiver
	forward := func(w http.ResponseWriter, call *http.Request) { r.ServeHTTP(w, call) }
	server := httptest.NewServer(http.HandlerFunc(forward))
	t.Cleanup(server.Close)
	r, err := c.Receiver("shop", server.URL, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Register("t", p); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return listening{r, server}
}

func save(t *testing.T, c *client.Client, body any, opts ...processor.Option) int64 {
	t.Helper()
	id, err := c.SaveDelayTask(t.Context(), "t", body, 0, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAReceiverRunsTasksAndTellsHowTheyEnd(t *testing.T) {
	t.Parallel()
	c := caller(t)
	outcomes := map[string]func(*processor.Task) error{
		"nil":       func(*processor.Task) error { return nil },
		"snooze":    func(*processor.Task) error { return processor.Snooze(0) },
		"again":     func(*processor.Task) error { return processor.RetryAfter(errors.New("not yet"), 0) },
		"permanent": func(*processor.Task) error { return processor.Permanent(errors.New("no use")) },
		"panic":     func(*processor.Task) error { panic(processor.Permanent(errors.New("oh"))) },
		"later": func(task *processor.Task) error {
			token := processor.Token{ID: task.ID, Version: task.Version}
			time.AfterFunc(0, func() { _ = c.Finish(context.Background(), token) })
			return processor.HandOver(time.Minute)
		},
	}
	seen := map[string]*atomic.Int32{}
	for name := range outcomes {
		seen[name] = new(atomic.Int32)
	}
	receive(t, c, func(_ context.Context, task *processor.Task) error {
		var name string
		if err := json.Unmarshal(task.Body, &name); err != nil {
			return err
		}
		if seen[name].Add(1) > 1 {
			return nil
		}
		return outcomes[name](task)
	})
	for name, want := range map[string]struct {
		status  processor.Status
		attempt int
		text    string
		calls   int32
	}{
		"nil":       {processor.Completed, 1, "", 1},
		"snooze":    {processor.Completed, 1, "", 2},
		"again":     {processor.Completed, 2, "not yet", 2},
		"permanent": {processor.Failed, 1, "no use", 1},
		"panic":     {processor.Failed, 1, "panic: oh", 1},
		"later":     {processor.Completed, 1, "", 1},
	} {
		task := settled(t, c, save(t, c, strconv.Quote(name)))
		if task.Status != want.status || task.Attempt != want.attempt || !strings.Contains(task.LastError(), want.text) ||
			seen[name].Load() != want.calls {
			t.Errorf("%s: %d calls, and it is %+v", name, seen[name].Load(), task)
		}
	}
}

func TestAReceiverRunsNothingThatItsServiceHasNotSigned(t *testing.T) {
	t.Parallel()
	c, err := client.New("http://127.0.0.1:1", client.WithBodyLimit(100))
	if err != nil {
		t.Fatal(err)
	}
	secret := webhook.NewSecret()
	r, err := c.Receiver("shop", "http://127.0.0.1/", client.ReceiverSecret(secret.Reveal()),
		client.ReceiverWindow(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	count := processor.Func(func(context.Context, *processor.Task) error { ran++; return nil })
	if err := r.Register("t", count); err != nil {
		t.Fatal(err)
	}
	without := func(name string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(name) } }
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	now, wrong := time.Now(), "wrong_signature"
	for name, tt := range map[string]struct {
		change func(call *http.Request)
		by     webhook.Secret
		at     time.Time
		body   string
		status int
		code   string
	}{
		"signed":                  {nil, secret, now, "{}", 204, ""},
		"unsigned":                {without("Webhook-Signature"), secret, now, "{}", 401, "unsigned"},
		"without a time":          {without("Webhook-Timestamp"), secret, now, "{}", 401, "unsigned"},
		"with another secret":     {nil, webhook.NewSecret(), now, "{}", 401, wrong},
		"of another version":      {with("Webhook-Signature", "v1a,x"), secret, now, "{}", 401, wrong},
		"of another task":         {with("Webhook-Id", "8"), secret, now, "{}", 401, wrong},
		"too old":                 {nil, secret, now.Add(-2 * time.Minute), "{}", 401, "too_old"},
		"of the future":           {nil, secret, now.Add(2 * time.Minute), "{}", 401, "too_old"},
		"with a token of another": {with("Delaytask-Token", "8.1"), secret, now, "{}", 400, "invalid_header"},
		"without an attempt":      {without("Delaytask-Attempt"), secret, now, "{}", 400, "invalid_header"},
		"of an unknown tag":       {with("Delaytask-Tag", "u"), secret, now, "{}", 404, "unknown_tag"},
		"too large":               {nil, secret, now, strings.Repeat("x", 101), 413, "body_too_large"},
		"read, not posted":        {func(r *http.Request) { r.Method = "GET" }, secret, now, "{}", 405, "method_not_allowed"},
	} {
		call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(tt.body))
		stamp := strconv.FormatInt(tt.at.Unix(), 10)
		for name, value := range map[string]string{
			"Webhook-Id": "7", "Webhook-Timestamp": stamp,
			"Webhook-Signature": signature(t, tt.by, "7."+stamp+"."+tt.body),
			"Delaytask-Tag":     "t", "Delaytask-Attempt": "1", "Delaytask-Token": "7.1",
		} {
			call.Header.Set(name, value)
		}
		if tt.change != nil {
			tt.change(call)
		}
		answer := httptest.NewRecorder()
		before := ran
		r.ServeHTTP(answer, call)
		var p wire.Problem
		_ = json.Unmarshal(answer.Body.Bytes(), &p)
		if answer.Code != tt.status || p.Code != tt.code || ran-before != map[bool]int{true: 1}[tt.code == ""] {
			t.Errorf("%s: answered %d %s, and %d tasks ran", name, answer.Code, answer.Body, ran-before)
		}
	}
}

// signature is computed without the code that is tested.
func signature(t *testing.T, secret webhook.Secret, text string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return "v0,AAAA v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestTwoReceiversOfOneTagShareItAndOneOutlivesTheOther(t *testing.T) {
	t.Parallel()
	c := caller(t)
	ran := make(chan string, 100)
	note := func(name string) processor.Func {
		return func(context.Context, *processor.Task) error { ran <- name; return nil }
	}
	first, _ := receive(t, c, note("first")), receive(t, c, note("second"))
	for names := map[string]bool{}; len(names) < 2; {
		if task := settled(t, c, save(t, c, 1)); task.Attempt != 1 {
			t.Errorf("attempt %d", task.Attempt)
		}
		names[wait(t, ran)] = true
	}
	first.CloseClientConnections() // as if its process were killed: it says nothing
	first.Close()
	for range 6 {
		if task := settled(t, c, save(t, c, 1)); task.Status != processor.Completed || task.Attempt != 1 {
			t.Errorf("%s in attempt %d: %s", task.Status, task.Attempt, task.LastError())
		}
		if name := wait(t, ran); name != "second" {
			t.Errorf("%s ran it", name)
		}
	}
}

// A receiver dies amid a task: its lease ends, and the task runs where somebody is left.
func TestATaskWhoseReceiverDiesRunsAtAnother(t *testing.T) {
	t.Parallel()
	c := caller(t)
	began, die := make(chan string, 1), make(chan struct{})
	dying := receive(t, c, func(ctx context.Context, _ *processor.Task) error {
		began <- "it"
		<-ctx.Done()
		<-die
		return context.Cause(ctx)
	})
	id := save(t, c, 1)
	wait(t, began)
	receive(t, c, func(context.Context, *processor.Task) error { return nil })
	dying.CloseClientConnections()
	if task := settled(t, c, id); task.Status != processor.Completed || task.CrashCount != 0 {
		t.Errorf("it is %+v", task)
	}
	close(die)
}

func TestAReceiverThatStopsFinishesWhatRunsAndIsCalledNoMore(t *testing.T) {
	t.Parallel()
	c := caller(t)
	began, goOn := make(chan string, 1), make(chan struct{})
	r := receive(t, c, func(context.Context, *processor.Task) error {
		began <- "it"
		<-goOn
		return nil
	})
	id := save(t, c, 1)
	wait(t, began)
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(context.Background()) }()
	for tick := time.Tick(5 * time.Millisecond); ; <-tick { // until it has left, which it does first
		e, err := c.Explain(t.Context(), processor.ID(save(t, c, 1, processor.WithKey("k"), processor.WithApp("shop"))))
		if err != nil {
			t.Fatal(err)
		}
		if e.Reason == processor.ReasonUnserved {
			break
		}
		if _, err := c.Cancel(t.Context(), processor.ID(e.Task.ID)); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if task := settled(t, c, id); task.Status != processor.Completed || task.Attempt != 1 {
		t.Errorf("%s in attempt %d", task.Status, task.Attempt)
	}
}

func TestAReceiverRegistersAgainWhenItIsForgottenOrHasOtherTags(t *testing.T) {
	t.Parallel()
	c, service := callerAt(t)
	done := processor.Func(func(context.Context, *processor.Task) error { return nil })
	r := receive(t, c, done, client.ReceiverTTL(5*time.Second))
	worker := workers(t, service, http.MethodGet, "").Workers[0]
	workers(t, service, http.MethodDelete, "/"+worker.ID.String()) // as if it had expired long ago
	if task := settled(t, c, save(t, c, 1)); task.Status != processor.Completed {
		t.Errorf("after it was forgotten: %s", task.LastError())
	}
	if err := r.Register("u", done, processor.Concurrency(1)); err != nil {
		t.Fatal(err)
	}
	id, err := c.SaveDelayTask(t.Context(), "u", nil, 0, processor.WithApp("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if task := settled(t, c, id); task.Status != processor.Completed {
		t.Errorf("of a tag that was added: %s", task.LastError())
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if left := workers(t, service, http.MethodGet, "").Workers; len(left) != 0 {
		t.Errorf("after the stop there are %+v", left)
	}
}

// workers asks the service for its receivers, or does something else with one.
func workers(t *testing.T, service, method, path string) (all wire.WorkerList) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, service+"/v1/workers"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	_ = json.NewDecoder(res.Body).Decode(&all)
	return all
}

func TestAReceiverThatCannotBeRegisteredIsRefused(t *testing.T) {
	t.Parallel()
	c := caller(t)
	for _, opts := range [][]client.ReceiverOption{
		{client.ReceiverSecret("whsec_x")}, {client.ReceiverTTL(time.Second)}, {client.ReceiverWindow(0)}, {nil},
	} {
		if _, err := c.Receiver("shop", "http://127.0.0.1/", opts...); !errors.Is(err, processor.ErrInvalidOption) {
			t.Errorf("an option: %v", err)
		}
	}
	if _, err := c.Receiver("a b", "http://127.0.0.1/"); !errors.Is(err, processor.ErrInvalidOption) {
		t.Errorf("an app: %v", err)
	}
	r, err := c.Receiver("shop", "http://192.168.1.1/")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); !errors.Is(err, processor.ErrInvalidOption) {
		t.Errorf("without a tag: %v", err)
	}
	nothing := processor.Func(func(context.Context, *processor.Task) error { return nil })
	if err := r.Register("t", nothing, processor.TTR(time.Minute)); !errors.Is(err, processor.ErrInvalidOption) {
		t.Errorf("with a TTR: %v", err)
	}
	if err := r.Register("t", nothing); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := r.Start(t.Context())
		if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != wire.CodeBlockedAddress {
			t.Errorf("an address that may not be called: %v", err)
		}
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

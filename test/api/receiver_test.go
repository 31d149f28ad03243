package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

// listening is a receiver behind an address of its own.
type listening struct {
	*client.Receiver
	server *httptest.Server
}

func listen(t *testing.T, c *client.Client, opts ...client.ReceiverOption) listening {
	t.Helper()
	var r *client.Receiver
	forward := func(w http.ResponseWriter, call *http.Request) { r.ServeHTTP(w, call) }
	server := httptest.NewServer(http.HandlerFunc(forward))
	t.Cleanup(server.Close)
	r, err := c.Receiver("shop", server.URL, opts...)
	servertest.OK(t, err)
	t.Cleanup(func() { stop(t, r) })
	return listening{r, server}
}

func receive(t *testing.T, c *client.Client, p processor.Func, opts ...client.ReceiverOption) listening {
	t.Helper()
	r := listen(t, c, opts...)
	start(t, r, "t", p)
	return r
}

func TestTwoReceiversOfOneTagShareItAndOneOutlivesTheOther(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t))
	ran := make(chan string, 100)
	note := func(name string) processor.Func {
		return func(context.Context, *delaytask.Task) error { ran <- name; return nil }
	}
	first, _ := receive(t, c, note("first")), receive(t, c, note("second"))
	for names := map[string]bool{}; len(names) < 2; {
		if task := settled(t, c, save(t, c, "t", 0)); task.Attempt != 1 {
			t.Errorf("attempt %d", task.Attempt)
		}
		names[wait(t, ran)] = true
	}
	first.server.CloseClientConnections() // as if its process were killed: no answer
	first.server.Close()
	for range 6 {
		if task := settled(t, c, save(t, c, "t", 0)); task.Status != delaytask.Completed || task.Attempt != 1 {
			t.Errorf("%s in attempt %d: %s", task.Status, task.Attempt, task.LastError())
		}
		if name := wait(t, ran); name != "second" {
			t.Errorf("%s ran it", name)
		}
	}
}

// A receiver dies during a task: the lease ends, and the task runs at another one.
func TestATaskWhoseReceiverDiesRunsAtAnother(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t))
	began, die := make(chan string, 1), make(chan struct{})
	dying := receive(t, c, func(ctx context.Context, _ *delaytask.Task) error {
		began <- "it"
		<-ctx.Done()
		<-die
		return context.Cause(ctx)
	})
	id := save(t, c, "t", 0)
	wait(t, began)
	receive(t, c, nothing)
	dying.server.CloseClientConnections()
	if task := settled(t, c, id); task.Status != delaytask.Completed || task.CrashCount != 0 {
		t.Errorf("it is %+v", task)
	}
	close(die)
}

func TestAReceiverThatStopsFinishesWhatRunsAndIsCalledNoMore(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t))
	began, goOn := make(chan string, 1), make(chan struct{})
	r := receive(t, c, func(context.Context, *delaytask.Task) error {
		began <- "it"
		<-goOn
		return nil
	})
	id := save(t, c, "t", 0)
	wait(t, began)
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(context.Background()) }()
	for tick := time.Tick(5 * time.Millisecond); ; <-tick { // until it has unregistered, which it does first
		e, err := c.Explain(t.Context(), delaytask.ID(save(t, c, "t", 0, delaytask.WithKey("k"),
			delaytask.WithApp("shop"))))
		servertest.OK(t, err)
		if e.Reason == report.ReasonUnserved {
			break
		}
		if _, err := c.Cancel(t.Context(), delaytask.ID(e.Task.ID)); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if task := settled(t, c, id); task.Status != delaytask.Completed || task.Attempt != 1 {
		t.Errorf("%s in attempt %d", task.Status, task.Attempt)
	}
}

func TestAReceiverRegistersAgainWhenItIsForgottenOrHasOtherTags(t *testing.T) {
	t.Parallel()
	url := serve(t)
	c := dial(t, url)
	r := receive(t, c, nothing, client.ReceiverTTL(5*time.Second))
	h := servertest.Client{TB: t, URL: url}
	registered := servertest.Ask[wire.ReceiverList](&h, http.StatusOK, "GET", "/v1/receivers", "").Receivers[0]
	// As if it had expired long ago.
	h.Want(http.StatusNoContent, "", "DELETE", "/v1/receivers/"+registered.ID.String(), "")
	if task := settled(t, c, save(t, c, "t", 0)); task.Status != delaytask.Completed {
		t.Errorf("after it was forgotten: %s", task.LastError())
	}
	servertest.OK(t, r.Register("u", processor.Func(nothing), processor.Concurrency(1)))
	if task := settled(t, c, save(t, c, "u", 0, delaytask.WithApp("shop"))); task.Status != delaytask.Completed {
		t.Errorf("of a tag that was added: %s", task.LastError())
	}
	stop(t, r)
	if left := servertest.Ask[wire.ReceiverList](&h, http.StatusOK, "GET", "/v1/receivers",
		"").Receivers; len(left) != 0 {
		t.Errorf("after the stop there are %+v", left)
	}
}

func TestAReceiverThatCannotBeRegisteredIsRefused(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t))
	for _, opts := range [][]client.ReceiverOption{
		{client.ReceiverSecret("whsec_x")}, {client.ReceiverTTL(time.Second)}, {client.ReceiverWindow(0)}, {nil},
	} {
		_, err := c.Receiver("shop", "http://127.0.0.1/", opts...)
		wantError(t, "an option", err, delaytask.ErrInvalidOption)
	}
	_, err := c.Receiver("a b", "http://127.0.0.1/")
	wantError(t, "an app", err, delaytask.ErrInvalidOption)
	r, err := c.Receiver("shop", "http://192.168.1.1/")
	servertest.OK(t, err)
	p := processor.Func(nothing)
	wantError(t, "without a tag", r.Start(t.Context()), delaytask.ErrInvalidOption)
	wantError(t, "with a TTR", r.Register("t", p, processor.TTR(time.Minute)), delaytask.ErrInvalidOption)
	wantError(t, "with a processor", r.Register("t", p), nil)
	for range 2 {
		err := r.Start(t.Context())
		if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != wire.CodeBlockedAddress {
			t.Errorf("an address that may not be called: %v", err)
		}
	}
	stop(t, r)
}

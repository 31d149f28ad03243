package push

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor/webhook"
)

// The reference library of Standard Webhooks verifies the calls. Another process, or this one after a restart, knows
// the receiver too.
func TestDueTaskIsPostedToItsReceiver(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		secret := webhook.NewSecret()
		reference, err := standardwebhooks.NewWebhook(secret.Reveal())
		servertest.OK(t, err)
		type call struct {
			header http.Header
			body   string
			err    error
		}
		called := make(chan call, 9)
		address := servertest.Listen(t, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = reference.Verify(body, r.Header)
			}
			called <- call{r.Header, r.Method + " " + r.URL.Path + " " + string(body), err}
		}) + "/hook"
		f.sign("shop", address, secret.Reveal(), "order.close")

		for _, tt := range []struct{ body, contentType string }{
			{`{"order": 7, "name":"ä"}`, "application/json"},
			{"hello {", "text/plain; charset=utf-8"},
		} {
			id := f.save("order.close", tt.body, delaytask.WithApp("shop"))
			got := servertest.Receive(t, called, "the call")
			if got.err != nil || got.body != "POST /hook "+tt.body {
				t.Errorf("received %q, %v", got.body, got.err)
			}
			task := f.awaitStatus(id, delaytask.Completed)
			for name, want := range map[string]string{
				"Content-Type": tt.contentType, "Webhook-Id": fmt.Sprint(id), "Delaytask-Id": fmt.Sprint(id),
				"Delaytask-Tag": "order.close", "Delaytask-Attempt": "1",
				"Delaytask-Token": delaytask.Token{ID: id, Version: task.Version - 1}.String(),
			} {
				if got := got.header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		}
		if n := f.count(secret.Reveal()[10:]); n > 0 {
			t.Errorf("the secret is logged %d times", n)
		}
		servertest.Stop(t, f.Scheduler)
		again := start(t, d)
		id := again.save("order.close", nil, delaytask.WithApp("shop"))
		if got := servertest.Receive(t, called, "the call of another process"); got.err != nil {
			t.Error(got.err)
		}
		again.awaitStatus(id, delaytask.Completed)
	})
}

func TestReceiverMayFinishLater(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		called := make(chan *http.Request, 9)
		f.register("shop", answer(t, http.StatusAccepted, called), "t")
		token := func() delaytask.Token {
			t.Helper()
			token, err := delaytask.ParseToken(servertest.Receive(t, called, "the call").Header.Get("Delaytask-Token"))
			servertest.OK(t, err)
			return token
		}
		finished := f.save("t", nil, delaytask.WithTTR(time.Hour))
		handed := token()
		if task := f.get(finished); task.Status != delaytask.Executing {
			t.Errorf("after 202 the task is %s", task.Status)
		}
		servertest.OK(t, f.Finish(t.Context(), handed))
		f.awaitStatus(finished, delaytask.Completed)

		forgotten := f.save("t", nil, delaytask.WithTTR(time.Second))
		attempts := 2
		for first, last := token(), token(); ; first, last, attempts = last, token(), attempts+1 {
			if err := f.Finish(t.Context(), first); err == nil {
				t.Error("the token of an attempt ends the next one")
			}
			err := f.Finish(t.Context(), last)
			if err == nil {
				break
			}
			if !errors.Is(err, delaytask.ErrLeaseLost) { // a machine may stand still for longer than the lease
				t.Fatal(err)
			}
		}
		if task := f.get(forgotten); task.Status != delaytask.Completed || task.Attempt != attempts {
			t.Errorf("it is %s in attempt %d, want completed in %d", task.Status, task.Attempt, attempts)
		}
	})
}

func TestTaskStartsWhenAReceiverIsCalled(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		f.register("shop", dead(t), "t")
		refused := f.save("t", nil, delaytask.WithApp("shop"), delaytask.WithMaxAttempts(1000))
		unserved := f.save("t", nil, delaytask.WithApp("mail"))
		for _, id := range []int64{refused, unserved} {
			servertest.Eventually(t, "a call is tried", func() bool {
				task := f.get(id)
				if task.Status == delaytask.Pending && !task.Started.IsZero() {
					t.Errorf("no receiver was called, and the task started at %v: %+v", task.Started, task)
				}
				return task.Status == delaytask.Pending && task.Version >= 2
			})
		}
		before := f.Now()
		f.register("shop", answer(t, 200, nil), "t")
		f.register("mail", answer(t, 202, nil), "t")
		for id, status := range map[int64]delaytask.Status{refused: delaytask.Completed,
			unserved: delaytask.Executing} {
			var task delaytask.TaskRow
			servertest.Eventually(t, "a receiver is called", func() bool {
				task = f.get(id)
				return task.Status == status && (status == delaytask.Completed ||
					strings.HasPrefix(task.Executor, "pop:"))
			})
			var late float64
			err := servertest.SQL(t, d.DSN).QueryRowContext(t.Context(),
				"SELECT lateness_ms FROM delay_task_lateness WHERE id = ?", id).Scan(&late)
			if err != nil || task.Started.Before(before) || math.Abs(late-task.Lateness().Seconds()*1000) > 1 {
				t.Errorf("started at %v, want after %v; the view says %v ms late, %v", task.Started, before, late, err)
			}
		}
	})
}

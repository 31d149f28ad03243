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
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor/webhook"
)

// The oracle is the reference library of Standard Webhooks.
func TestDueTaskIsPostedToItsWorker(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		secret := webhook.NewSecret()
		reference, err := standardwebhooks.NewWebhook(secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		type call struct {
			header http.Header
			body   string
			err    error
		}
		called := make(chan call, 9)
		address := listen(t, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = reference.Verify(body, r.Header)
			}
			called <- call{r.Header, r.Method + " " + r.URL.Path + " " + string(body), err}
		}) + "/hook"
		f.sign(t, "shop", address, secret.Reveal(), "order.close")

		for _, tt := range []struct{ body, contentType string }{
			{`{"order": 7, "name":"ä"}`, "application/json"},
			{"hello {", "text/plain; charset=utf-8"},
		} {
			id := f.save(t, "order.close", tt.body, forApp("shop"))
			got := receive(t, called, "the call")
			if got.err != nil || got.body != "POST /hook "+tt.body {
				t.Errorf("received %q, %v", got.body, got.err)
			}
			task := f.awaitStatus(t, id, delaytask.Completed)
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
		if n := f.logged.count(secret.Reveal()[10:]); n > 0 {
			t.Errorf("the secret is logged %d times", n)
		}
	})
}

func TestApplicationsGetTheirOwnTasks(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		const all = 8
		shop, mail := make(chan *http.Request, 4*all), make(chan *http.Request, 4*all)
		other := make(chan *http.Request, 4*all)
		f.register(t, "shop", answer(t, 200, shop), "t")
		f.register(t, "mail", answer(t, 200, mail), "t", "u")
		f.register(t, "shop", answer(t, 200, other), "u")

		var ids []int64
		for range all {
			ids = append(ids, f.save(t, "t", nil, forApp("shop")))
		}
		for _, id := range ids {
			f.awaitStatus(t, id, delaytask.Completed)
		}
		if len(shop) != all || len(mail)+len(other) != 0 {
			t.Fatalf("of %d tasks for shop, shop got %d, others %d and %d", all, len(shop), len(mail), len(other))
		}
		ids = nil
		for range all {
			ids = append(ids, f.save(t, "t", nil))
		}
		for _, id := range ids {
			f.awaitStatus(t, id, delaytask.Completed)
		}
		if len(shop) != all+all/2 || len(mail) != all/2 || len(other) != 0 {
			t.Errorf("of %d tasks for anybody, shop got %d, mail %d, who does not serve the tag %d",
				all, len(shop)-all, len(mail), len(other))
		}
	})
}

func TestAnotherAddressTakesOver(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		called := make(chan *http.Request, 99)
		f.register(t, "shop", dead(t), "t")
		f.register(t, "shop", answer(t, 500, nil), "t")
		f.register(t, "shop", answer(t, 204, called), "t")
		for range 3 { // so that each of them has its turn
			id := f.save(t, "t", nil)
			if task := f.awaitStatus(t, id, delaytask.Completed); task.Attempt != 1 {
				t.Errorf("it took %d attempts", task.Attempt)
			}
		}
		if len(called) != 3 {
			t.Errorf("the one that lives was called %d times, want 3", len(called))
		}
	})
}

func TestWorkerMayFinishLater(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		called := make(chan *http.Request, 9)
		f.register(t, "shop", answer(t, http.StatusAccepted, called), "t")
		token := func() delaytask.Token {
			t.Helper()
			token, err := delaytask.ParseToken(receive(t, called, "the call").Header.Get("Delaytask-Token"))
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		finished := f.save(t, "t", nil, delaytask.WithTTR(time.Hour))
		handed := token()
		if task := f.get(t, finished); task.Status != delaytask.Executing {
			t.Errorf("after 202 the task is %s", task.Status)
		}
		if err := f.Finish(t.Context(), handed); err != nil {
			t.Fatal(err)
		}
		f.awaitStatus(t, finished, delaytask.Completed)

		forgotten := f.save(t, "t", nil, delaytask.WithTTR(time.Second))
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
		if task := f.get(t, forgotten); task.Status != delaytask.Completed || task.Attempt != attempts {
			t.Errorf("it is %s in attempt %d, want completed in %d", task.Status, task.Attempt, attempts)
		}
	})
}

func TestTaskStartsWhenSomebodyIsCalledWithIt(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		f.register(t, "shop", dead(t), "t")
		refused := f.save(t, "t", nil, forApp("shop"), delaytask.WithMaxAttempts(1000))
		unserved := f.save(t, "t", nil, forApp("mail"))
		for _, id := range []int64{refused, unserved} {
			eventually(t, "a call is tried", func() bool {
				task := f.get(t, id)
				if task.Status == delaytask.Pending && !task.Started.IsZero() {
					t.Errorf("nobody was called, and the task started at %v: %+v", task.Started, task)
				}
				return task.Status == delaytask.Pending && task.Version >= 2
			})
		}
		before := f.Now()
		f.register(t, "shop", answer(t, 200, nil), "t")
		f.register(t, "mail", answer(t, 202, nil), "t")
		for id, status := range map[int64]delaytask.Status{refused: delaytask.Completed, unserved: delaytask.Executing} {
			var task delaytask.Task
			eventually(t, "somebody is called", func() bool {
				task = f.get(t, id)
				return task.Status == status && (status == delaytask.Completed || strings.HasPrefix(task.Executor, "pop:"))
			})
			var late float64
			err := f.db.QueryRowContext(t.Context(), "SELECT lateness_ms FROM delay_task_lateness WHERE id = ?", id).Scan(&late)
			if err != nil || task.Started.Before(before) || math.Abs(late-task.Lateness().Seconds()*1000) > 1 {
				t.Errorf("started at %v, want after %v; the view says %v ms late, %v", task.Started, before, late, err)
			}
		}
	})
}

package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/wire"
)

// each runs f on every kind of database, beside all other tests.
func each(t *testing.T, f func(t *testing.T, db dbtest.Database)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		f(t, db)
	})
}

const (
	sealing = "DELAYTASK_SECRET=a secret of this test, long enough"
	signing = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
)

// delivered is a call that a receiver took.
type delivered struct {
	id   string
	body string
	at   time.Time
}

// receiver verifies calls as its users would, by the reference library.
func receiver(t *testing.T) (url string, calls <-chan delivered) {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(signing)
	if err != nil {
		t.Fatal(err)
	}
	took := make(chan delivered, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		if err := verifier.Verify(body, r.Header); err != nil {
			t.Errorf("the reference library refuses the call: %v", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		took <- delivered{r.Header.Get("Webhook-Id"), string(body), at}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hooks/close", took
}

func TestATaskReachesAPullWorkerAndAReceiver(t *testing.T) {
	each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db, sealing)
		url, calls := receiver(t)
		register := `{"app":"shop","address":"` + url + `","tags":["order.close"],"secret":"` + signing + `"}`
		s.call("POST", "/v1/workers", register).wants(t, 201, "")
		pulled := s.save(`{"tag":"mail.send","body":{"to":"a@example.com"},"delay":"2s"}`)
		pushed := s.save(`{"tag":"order.close","app":"shop","body":{"order":42},"delay":"2s"}`)

		task := s.pop("/v1/tags/mail.send/pop?wait=30s&ttr=1m")[0]
		t.Logf("the pull worker had it %v after it was due", time.Since(pulled.Expected.Std()))
		if task.ID != pulled.ID || string(task.Body.Body) != `{"to":"a@example.com"}` {
			t.Errorf("popped %+v", task)
		}
		s.finish(task).wants(t, 204, "")
		s.finish(task).wants(t, 409, wire.CodeLeaseLost)

		call := receive(t, calls, "the receiver is called")
		t.Logf("the receiver had it %v after it was due", call.at.Sub(pushed.Expected.Std()))
		if call.id != pushed.ID.String() || call.body != `{"order":42}` {
			t.Errorf("called with %+v", call)
		}
		for _, id := range []wire.ID{pulled.ID, pushed.ID} {
			eventually(t, "the task is completed", func() bool { return s.task(id).Status == "completed" })
			if done := s.task(id); done.Attempt != 1 {
				t.Errorf("completed at attempt %d", done.Attempt)
			}
		}
	})
}

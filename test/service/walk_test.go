package service

import (
	"io"
	"net/http"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	sealing = "DELAYTASK_SECRET=a secret of this test, long enough"
	signing = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
)

// delivered is a call that a receiver accepted.
type delivered struct {
	id   string
	body string
	at   time.Time
}

// receiver verifies calls by the reference library.
func receiver(t *testing.T) (url string, calls <-chan delivered) {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(signing)
	servertest.OK(t, err)
	took := make(chan delivered, 100)
	url = servertest.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		if err := verifier.Verify(body, r.Header); err != nil {
			t.Errorf("the reference library refuses the call: %v", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		took <- delivered{r.Header.Get("Webhook-Id"), string(body), at}
	})
	return url + "/hooks/close", took
}

func TestATaskReachesAPullWorkerAndAReceiver(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db, sealing)
		url, calls := receiver(t)
		register := `{"app":"shop","address":"` + url + `","tags":["order.close"],"secret":"` + signing + `"}`
		s.Want(201, "", "POST", "/v1/receivers", register)
		pulled := s.Save(`{"tag":"mail.send","body":{"to":"a@example.com"},"delay":"2s"}`)
		pushed := s.Save(`{"tag":"order.close","app":"shop","body":{"order":42},"delay":"2s"}`)

		task := s.Pop("mail.send", "&ttr=1m")
		t.Logf("the pull worker had it %v after it was due", time.Since(pulled.Expected.Std()))
		if task.ID != pulled.ID || string(task.Body.Body) != `{"to":"a@example.com"}` {
			t.Errorf("popped %+v", task)
		}
		s.finish(204, "", task)
		s.finish(409, wire.CodeLeaseLost, task)

		call := servertest.Receive(t, calls, "the receiver is called")
		t.Logf("the receiver had it %v after it was due", call.at.Sub(pushed.Expected.Std()))
		if call.id != pushed.ID.String() || call.body != `{"order":42}` {
			t.Errorf("called with %+v", call)
		}
		for _, id := range []wire.ID{pulled.ID, pushed.ID} {
			servertest.Eventually(t, "the task is completed", func() bool { return s.Task(id).Status == "completed" })
			if done := s.Task(id); done.Attempt != 1 {
				t.Errorf("completed at attempt %d", done.Attempt)
			}
		}
	})
}

func TestTwoServersShareADatabase(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) { // a SQLite file has one server
		t.Parallel()
		a, b := serve(t, db), serve(t, db)
		saved := a.Save(`{"tag":"t","body":1,"delay":"100ms"}`)
		task := b.Pop("t", "")
		if task.ID != saved.ID {
			t.Errorf("popped %s, saved %s", task.ID, saved.ID)
		}
		a.finish(204, "", task)
		b.finish(409, wire.CodeLeaseLost, task)

		a.Want(204, "", "POST", "/v1/tags/t/pause", "")
		paused := time.Now()
		for _, s := range []*server{a, b} {
			servertest.Eventually(t, "the pause holds", func() bool {
				s.Save(`{"tag":"t"}`)
				return s.Call("POST", "/v1/tags/t/pop?wait=1s&max=1000", "").Status == 204
			})
		}
		t.Logf("the pause held on both within %v, 2 s of it waits", time.Since(paused))
		b.Want(204, "", "POST", "/v1/tags/t/resume", "")
		for _, s := range []*server{a, b} {
			s.Save(`{"tag":"t"}`)
			s.finish(204, "", s.Pop("t", ""))
		}
	})
}

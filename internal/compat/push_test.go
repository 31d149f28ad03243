package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/push"
	"github.com/delaytask/delaytask/internal/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// call is what a receiver was called with.
type call struct {
	method, path, token, body string
}

// receiver answers each call with the next of the answers, and the last one for ever.
func receiver(t *testing.T, answers ...string) (url string, calls <-chan call) {
	t.Helper()
	got := make(chan call, 10)
	n := 0
	return servertest.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- call{r.Method, r.URL.RequestURI(), r.Header.Get("X-Token"), string(body)}
		_, _ = io.WriteString(w, answers[min(n, len(answers)-1)])
		n++
	}), got
}

// pushing is a queue whose tag http is served, as the service serves it.
func pushing(t *testing.T, db dbtest.Database) (q *queue, attempts <-chan processor.Task) {
	t.Helper()
	client := servertest.Webhooks(t, webhook.Config{})
	q = serve(t, db.DSN, func(c *Config) {
		c.Check = func(item delaytask.Item) error {
			if item.Tag != access.HTTPTag {
				return nil
			}
			body, err := webhook.ParseRequest(item.Body.(json.RawMessage))
			return errors.Join(err, client.CheckURL(body.URL))
		}
	})
	began := make(chan processor.Task, 10)
	see := func(next processor.Processor) processor.Processor {
		return processor.Func(func(ctx context.Context, task *processor.Task) error {
			began <- *task
			return next.Process(ctx, task)
		})
	}
	err := q.scheduler.Register(access.HTTPTag, client.HTTP(), processor.Use(see, RetryAfterTTR(15*time.Second)),
		processor.RetryBackoff(processor.Constant(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	return q, began
}

func TestS13HTTPJobIsSentUntilItsPassruleMatches(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		q, attempts := pushing(t, db)
		url, calls := receiver(t, `{"code":0}`, `{"code":1,"more":"is allowed"}`)
		body := fmt.Sprintf(`{"url":"%s/hook","method":"post","headers":{"X-Token":"t"},"body":{"n":1},"passrule":{"code":1}}`, url)
		q.ok(q.add(fmt.Sprintf(`{"topic":"http","id":"1","delay":10,"ttr":1000,"body":%q}`, body)))
		for range 2 {
			if got, want := <-calls, (call{"POST", "/hook", "t", `{"n":1}`}); got != want {
				t.Errorf("called with %+v, want %+v", got, want)
			}
		}
		first, second := <-attempts, <-attempts
		if wait := second.Due.Sub(first.Due); wait < 500*time.Millisecond { // the clock's bounds are wide while a machine stalls
			t.Errorf("sent again %v after the first attempt was due, want its TTR of 1 s", wait)
		}

		url, calls = receiver(t, `{}`)
		body = fmt.Sprintf(`{"url":"%s/hook","method":"get","body":{"a":"b c"}}`, url)
		q.ok(q.add(fmt.Sprintf(`{"topic":"http","id":"2","delay":0,"ttr":60000,"body":%q}`, body)))
		if got, want := <-calls, (call{"GET", "/hook?a=b+c", "", ""}); got != want {
			t.Errorf("called with %+v, want %+v", got, want)
		}

		url, calls = receiver(t, `{"success":true}`)
		body = fmt.Sprintf(`{"url":"%s/","body":"pushed","passrule":{"success":true}}`, url)
		q.ok(q.command(fmt.Sprintf(`{"command":"add","topic":"http","id":"3","delay":0,"TTR":60,"body":%q}`, body)))
		if got := <-calls; got.body != "pushed" {
			t.Errorf("called with %+v", got)
		}
	})
}

// The worker stands in the configuration, so it is there again after a restart, and so are the jobs.
func TestS16WorkerOfTheConfigurationIsCalledAfterARestart(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		before := serve(t, db.DSN)
		before.ok(before.add(`{"topic":"mail","id":"1","delay":300,"ttr":1000,"body":"{\"to\":1}"}`))
		servertest.Stop(t, before.scheduler)

		url, calls := receiver(t, `{"code":0}`, `{"code":1}`)
		rule, err := webhook.ParseRule([]byte(`{"code":1}`))
		if err != nil {
			t.Fatal(err)
		}
		worker := push.Static{Tag: "mail", URL: url + "/mail", Rule: rule}
		p, err := worker.Processor(servertest.Webhooks(t, webhook.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		after := serve(t, db.DSN)
		id := after.task("mail", "1").ID
		options := append(worker.Options(), processor.Use(RetryAfterTTR(15*time.Second)),
			processor.RetryBackoff(processor.Constant(time.Hour)))
		if err := after.scheduler.Register(worker.Tag, p, options...); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first answer does not match
			if got, want := <-calls, (call{"POST", "/mail", "", `{"to":1}`}); got != want {
				t.Errorf("called with %+v, want %+v", got, want)
			}
		}
		servertest.Eventually(t, "it is completed", func() bool { return after.byID(id).Status == delaytask.Completed })
	})
}

func TestHTTPJobThatCannotBeSentIsRefused(t *testing.T) {
	t.Parallel()
	q, _ := pushing(t, dbtest.New(t, dbtest.SQLite))
	for body, why := range map[string]string{
		`no JSON`:                             "invalid request",
		`{"method":"post"}`:                   "invalid URL",
		`{"url":"file:///etc/passwd"}`:        "invalid URL",
		`{"url":"https://10.0.0.1/x"}`:        "not allowed",
		`{"url":"https://a.b/","passrule":1}`: "invalid request",
	} {
		q.refused(q.add(fmt.Sprintf(`{"topic":"http","id":"1","body":%q}`, body)), why)
		q.refused(q.command(fmt.Sprintf(`{"command":"add","topic":"http","id":"1","body":%q}`, body)), why)
	}
	q.refused(q.complete(access.HTTPTag, "1"), "no unfinished job")
}

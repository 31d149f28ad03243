package push

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestTaskOfAnAbsentApplicationWaits(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		f.register("mail", answer(t, 200, nil), "t")
		f.register("shop", answer(t, 200, nil), "another")
		id := f.save("t", "{}", delaytask.WithApp("shop"))
		var task delaytask.TaskRow
		servertest.Eventually(t, "it is put back", func() bool {
			task = f.get(id)
			return task.Status == delaytask.Pending && task.Version > 1
		})
		if wait := task.Due.Sub(task.Expected); task.Attempt != 0 || wait < leastWait || len(task.Errors) > 0 {
			t.Errorf("put back for %v, in attempt %d, with %+v", wait, task.Attempt, task.Errors)
		}
		e, err := f.registry.Explain(t.Context(), &task)
		if err != nil || e.Reason != delaytask.ReasonUnserved || e.Task.ID != id || e.Task.Body != nil {
			t.Errorf("explained as %+v, %v", e, err)
		}
		for _, word := range []string{"shop", "the tag t", "other applications"} {
			if !strings.Contains(e.Text, word) {
				t.Errorf("%q does not say %q", e.Text, word)
			}
		}
		called := make(chan *http.Request, 9)
		f.register("shop", answer(t, 200, called), "t")
		if e, err := f.registry.Explain(t.Context(), &task); err != nil || e.Reason != "" {
			t.Errorf("with a receiver it is explained as %+v, %v", e, err)
		}
		_, _ = f.Reschedule(t.Context(), delaytask.ID(id), 0) // unless it has come back by itself, which it does within 5 s
		servertest.Receive(t, called, "the call")
		if task := f.awaitStatus(id, delaytask.Completed); task.Attempt != 1 {
			t.Errorf("it took %d attempts", task.Attempt)
		}
	})
}

func TestExplainLeavesOtherTasksToTheScheduler(t *testing.T) {
	t.Parallel()
	f := start(t, dbtest.New(t, dbtest.SQLite))
	explains := func(tag string, want delaytask.Reason, options ...delaytask.Option) {
		t.Helper()
		id, err := f.SaveDelayTask(t.Context(), tag, nil, time.Hour, options...)
		if err != nil {
			t.Fatal(err)
		}
		task := f.get(id)
		e, err := f.registry.Explain(t.Context(), &task)
		if err != nil || e.Reason != want {
			t.Errorf("%s: explained as %s: %s, %v; want %q", tag, e.Reason, e.Text, err, want)
		}
		if strings.Contains(e.Text, "other applications") {
			t.Errorf("there are no others: %s", e.Text)
		}
		task.Status = delaytask.Executing
		if e, err := f.registry.Explain(t.Context(), &task); err != nil || e.Reason != "" {
			t.Errorf("%s while it runs: explained as %+v, %v", tag, e, err)
		}
	}
	explains("t", "")
	explains("t", delaytask.ReasonUnserved, delaytask.WithApp("shop"))
	explains("t", delaytask.ReasonUnserved, delaytask.WithApp(strings.Repeat("a", 128)))
	explains("http", "", delaytask.WithApp("shop"))
}

package api

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

// forgetful loses the first answer to every request that changes something, after the service has made the change.
type forgetful struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	what := r.Method + r.URL.Path
	if err != nil || r.Method == http.MethodGet || r.URL.Path == "/v1/pop" || f.seen[what] {
		return res, err
	}
	f.seen[what] = true
	_ = res.Body.Close()
	return nil, io.ErrUnexpectedEOF
}

func TestLostAnswersOfTheRealService(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := dial(t, serve(t), client.WithHTTPClient(&http.Client{Transport: &forgetful{seen: map[string]bool{}}}))
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	if _, err := c.SaveDelayTask(ctx, "a", 0, 0); err != nil {
		t.Fatal(err)
	}
	items := []delaytask.Item{{Tag: "a", Body: 1}, {Tag: "a", Body: 2}, {Tag: "a", Body: 3}, {Tag: "a", Body: 4}}
	if results, err := c.SaveDelayTasks(ctx, items); err != nil || len(results) != 4 {
		t.Fatalf("got %v, %v", results, err)
	}
	var popped []*delaytask.Popped
	for len(popped) < 5 {
		more, err := c.Pop(ctx, "a", delaytask.PopMax(10), delaytask.PopTTR(time.Minute))
		servertest.OK(t, err)
		popped = append(popped, more...)
	}
	if n := total(t, c); n != 5 {
		t.Errorf("%d tasks are stored, want 5", n)
	}
	wantError(t, "Touch", popped[0].Touch(ctx, time.Hour), nil)
	wantError(t, "Finish", popped[0].Finish(ctx), nil)
	if answers, err := c.FinishAll(ctx, []delaytask.Token{popped[1].Token(), popped[2].Token()}); err != nil ||
		errors.Join(answers...) != nil {
		t.Errorf("FinishAll: %v, %v", answers, err)
	}
	// These changes are made, and the error says that they may have been.
	_, cancel := c.Cancel(ctx, delaytask.ID(popped[4].ID))
	wantError(t, "Cancel", cancel, client.ErrNoAnswer)
	wantError(t, "Fail", popped[3].Fail(ctx, processor.Permanent(io.EOF)), client.ErrNoAnswer)
	want := []delaytask.Status{
		delaytask.Completed, delaytask.Completed, delaytask.Completed, delaytask.Failed, delaytask.Cancelled,
	}
	for i, p := range popped {
		if task := settled(t, c, p.ID); task.Status != want[i] || task.Attempt != 1 {
			t.Errorf("task %d is %s in attempt %d, want %s", i, task.Status, task.Attempt, want[i])
		}
	}
}

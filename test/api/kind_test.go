package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

type kindOrder struct{ Number int }

var closeKind = processor.NewKind[kindOrder]("order.close", delaytask.WithMaxAttempts(5))

func TestTasksOfAKindAreSavedAndRun(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ran := make(chan int, 10)
		servertest.OK(t, closeKind.Process(s, func(_ context.Context, _ *delaytask.Task, o kindOrder) error {
			ran <- o.Number
			return nil
		}))
		servertest.OK(t, s.Start(t.Context()))
		id, err := closeKind.Save(t.Context(), s, kindOrder{1}, 0, delaytask.WithKey("k"))
		servertest.OK(t, err)
		if got := wait(t, ran); got != 1 {
			t.Errorf("ran order %d, want 1", got)
		}
		if task := settled(t, s, id); task.MaxAttempts != 5 || task.Key != "k" || task.Status != delaytask.Completed {
			t.Errorf("got %+v", task)
		}
		results, err := s.SaveDelayTasks(t.Context(), []delaytask.Item{
			closeKind.Item(kindOrder{2}, 0),
			{Tag: closeKind.Tag(), Body: `{"Number":"two"}`},
		})
		servertest.OK(t, err)
		if got := wait(t, ran); got != 2 {
			t.Errorf("ran order %d, want 2", got)
		}
		bad := settled(t, s, results[1].ID)
		if bad.Status != delaytask.Failed || bad.Attempt != 1 || !strings.Contains(bad.LastError(), "at byte 15") {
			t.Errorf("a body that does not decode became %+v", bad)
		}
		servertest.OK(t, s.Stop(context.WithoutCancel(t.Context())))
	})
}

func TestPopOfAKindFailsWhatDoesNotDecode(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		servertest.OK(t, s.Start(t.Context()))
		text := processor.NewKind[string]("text")
		_, err := text.Save(t.Context(), s, "not JSON", 0)
		servertest.OK(t, err)
		texts, err := text.Pop(t.Context(), s, delaytask.PopWait(time.Minute))
		if err != nil || len(texts) != 1 || texts[0].Body != "not JSON" {
			t.Fatalf("popped %+v, %v", texts, err)
		}
		servertest.OK(t, texts[0].Finish(t.Context()))

		bad, err := s.SaveDelayTask(t.Context(), closeKind.Tag(), "not JSON", 0, delaytask.WithPriority(1))
		servertest.OK(t, err)
		_, err = closeKind.Save(t.Context(), s, kindOrder{3}, 100*time.Millisecond)
		servertest.OK(t, err)
		orders, err := closeKind.Pop(t.Context(), s, delaytask.PopWait(time.Minute))
		if err != nil || len(orders) != 1 || orders[0].Body.Number != 3 {
			t.Fatalf("popped %+v, %v", orders, err)
		}
		servertest.OK(t, orders[0].Finish(t.Context()))
		if task := get(t, s, bad); task.Status != delaytask.Failed || task.Attempt != 1 {
			t.Errorf("a body that does not decode became %+v", task)
		}
	})
}

func TestTasksOfAKindAreSavedInTransactions(t *testing.T) {
	t.Parallel()
	s, d := embedded(t)
	tx := begin(t, d)
	id, err := closeKind.SaveTx(t.Context(), s, tx, kindOrder{4}, time.Hour)
	servertest.OK(t, errors.Join(err, tx.Commit()))
	if task := get(t, s, id); string(task.Body) != `{"Number":4}` || task.MaxAttempts != 5 {
		t.Errorf("got %+v", task)
	}
	bad := processor.NewKind[func()]("t")
	_, err = bad.Save(t.Context(), s, func() {}, 0)
	wantError(t, "a body that is a function", err, delaytask.ErrInvalidBody)
}

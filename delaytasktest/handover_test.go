package delaytasktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

func TestHandedOverTaskIsEndedByItsToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	var token delaytask.Token
	register(t, s, "t", func(_ context.Context, task *processor.Task) error {
		token = delaytask.Token{ID: task.ID, Version: task.Version}
		return processor.HandOver(time.Hour)
	})
	id := save(t, s, "t", time.Minute)
	s.Advance(30 * time.Minute)
	if task, err := s.Get(t.Context(), delaytask.ID(id)); err != nil || task.Status != delaytask.Executing {
		t.Fatalf("got %+v, %v", task, err)
	}
	if err := s.Touch(t.Context(), token, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.Fail(t.Context(), token, errors.New("not now")); err != nil {
		t.Fatal(err)
	}
	old := token
	s.Advance(time.Minute)
	if answers, err := s.FinishAll(t.Context(), []delaytask.Token{old, token}); err != nil ||
		!errors.Is(answers[0], delaytask.ErrLeaseLost) || answers[1] != nil {
		t.Fatalf("got %v, %v", answers, err)
	}
	task, err := s.Get(t.Context(), delaytask.ID(id))
	if err != nil || task.Status != delaytask.Completed || task.Attempt != 2 || !task.Started.Equal(noon.Add(time.Minute)) {
		t.Errorf("got %+v, %v", task, err)
	}
}

package api

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

// pop waits for a task of the tag.
func pop(t *testing.T, s processor.Scheduler, tag string, opts ...delaytask.PopOption) *delaytask.Popped {
	t.Helper()
	popped, err := s.Pop(t.Context(), tag, opts...)
	if err != nil || len(popped) != 1 {
		t.Fatalf("popped %v, %v", popped, err)
	}
	return popped[0]
}

func TestTasksArePoppedAndEnded(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx := t.Context()
		servertest.OK(t, s.Start(ctx))
		if popped, err := s.Pop(ctx, "a", delaytask.PopWait(0)); len(popped) != 0 || err != nil {
			t.Fatalf("popped %v, %v of an empty table", popped, err)
		}
		_, err := s.SaveDelayTasks(ctx, []delaytask.Item{
			{Tag: "a", Body: 1}, {Tag: "b", Body: 2}, {Tag: "a", Body: 3, Delay: 200 * time.Millisecond},
		})
		servertest.OK(t, err)
		var tokens []delaytask.Token
		for len(tokens) < 3 {
			popped, err := s.Pop(ctx, "a", delaytask.PopAlso("b"), delaytask.PopMax(10), delaytask.PopTTR(time.Minute))
			servertest.OK(t, err)
			for _, p := range popped {
				tokens = append(tokens, p.Token())
				for _, ttr := range []time.Duration{time.Second, 1 << 62} {
					wantError(t, "Touch", p.Touch(ctx, ttr), nil)
				}
				wantError(t, "Touch for no time", p.Touch(ctx, 0), delaytask.ErrInvalidTTR)
				if p.Attempt != 1 || len(p.Body) != 1 || p.Due.IsZero() {
					t.Errorf("got %+v", p.Task)
				}
			}
		}
		other := s.another() // ends the tasks of this one by their tokens
		wantError(t, "Finish", other.Finish(ctx, tokens[0]), nil)
		wantError(t, "Release", other.Release(ctx, tokens[1]), nil)
		answers, err := other.FinishAll(ctx, []delaytask.Token{
			tokens[0], {}, {ID: 7, Version: 1}, tokens[1], tokens[2], tokens[2],
		})
		servertest.OK(t, err)
		lost := delaytask.ErrLeaseLost
		for i, want := range []error{lost, delaytask.ErrInvalidToken, delaytask.ErrNotFound, lost, nil, lost} {
			wantError(t, "FinishAll", answers[i], want)
		}
		_, err = s.Cancel(ctx, delaytask.ID(tokens[2].ID), delaytask.OnlyPending())
		wantError(t, "Cancel of a completed one", err, delaytask.ErrFinished)

		again := pop(t, s, "a", delaytask.PopAlso("b"))
		if again.ID != tokens[1].ID || again.Attempt != 1 {
			t.Fatalf("got %+v", again.Task)
		}
		wantError(t, "Fail", again.Fail(ctx, processor.RetryAfter(errors.New("busy"), 0)), nil)
		wantError(t, "Finish after Fail", again.Finish(ctx), delaytask.ErrLeaseLost)
		second := pop(t, s, "a", delaytask.PopAlso("b"))
		wantError(t, "the last failure", second.Fail(ctx, processor.Permanent(errors.New("no"))), nil)
		if task := get(t, s, second.ID); task.Status != delaytask.Failed || task.Attempt != 2 || len(task.Errors) != 2 {
			t.Errorf("got %+v", task)
		}

		// A retry resets the attempts, and keeps the errors.
		wantError(t, "Retry", s.Retry(ctx, delaytask.ID(second.ID)), nil)
		wantError(t, "another Retry", s.Retry(ctx, delaytask.ID(second.ID)), delaytask.ErrNotFailed)
		third := pop(t, s, "a", delaytask.PopAlso("b"))
		wantError(t, "Finish", third.Finish(ctx), nil)
		if task := get(t, s, third.ID); task.Status != delaytask.Completed || task.Attempt != 1 ||
			len(task.Errors) != 2 {
			t.Errorf("got %+v", task)
		}
	})
}

func TestPopThatShallNotWaitReturnsWhatIsDue(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		servertest.OK(t, s.Start(t.Context()))
		id := save(t, s, "a", 0)
		popped, err := s.Pop(t.Context(), "a", delaytask.PopWait(0))
		// The machine stalled during the claim.
		for tries := 1; err == nil && len(popped) == 0 && tries < 10; tries++ {
			popped, err = s.Pop(t.Context(), "a", delaytask.PopWait(0))
		}
		if err != nil || len(popped) != 1 || popped[0].ID != id {
			t.Fatalf("popped %v, %v", popped, err)
		}
		wantError(t, "Release", popped[0].Release(t.Context()), nil)
	})
}

func TestPopsAndTokensAreChecked(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx, many := t.Context(), slices.Repeat([]string{"b"}, 100)
		for name, c := range map[string]struct {
			tag  string
			opt  delaytask.PopOption
			want error
		}{
			"an invalid tag":        {"a b", delaytask.PopMax(1), delaytask.ErrInvalidTag},
			"another invalid tag":   {"a", delaytask.PopAlso(""), delaytask.ErrInvalidTag},
			"too many tags":         {"a", delaytask.PopAlso(many...), delaytask.ErrInvalidOption},
			"no tasks":              {"a", delaytask.PopMax(0), delaytask.ErrInvalidOption},
			"an option that is nil": {"a", nil, delaytask.ErrInvalidOption},
			"a negative wait":       {"a", delaytask.PopWait(-1), delaytask.ErrInvalidOption},
			"a negative TTR":        {"a", delaytask.PopTTR(-1), delaytask.ErrInvalidTTR},
			"a TTR of ten years":    {"a", delaytask.PopTTR(87_600 * time.Hour), delaytask.ErrInvalidTTR},
		} {
			_, err := s.Pop(ctx, c.tag, c.opt)
			wantError(t, name, err, c.want)
		}
		for _, token := range []delaytask.Token{{}, {ID: 1}, {Version: 1}, {ID: -1, Version: 1}, {ID: 1, Version: -1}} {
			for what, err := range map[string]error{
				"Finish": s.Finish(ctx, token), "Release": s.Release(ctx, token),
				"Fail": s.Fail(ctx, token, errors.New("boom")), "Touch": s.Touch(ctx, token, time.Second),
			} {
				wantError(t, what+" "+token.String(), err, delaytask.ErrInvalidToken)
			}
		}
		token := delaytask.Token{ID: 1, Version: 1}
		wantError(t, "failed with nil", s.Fail(ctx, token, nil), delaytask.ErrInvalidOption)
		wantError(t, "touched for nothing", s.Touch(ctx, token, 0), delaytask.ErrInvalidTTR)
		answers, err := s.FinishAll(ctx, make([]delaytask.Token, request.MaxItems+1))
		if !errors.Is(err, delaytask.ErrBatchTooLarge) || answers != nil {
			t.Errorf("%d answers, %v", len(answers), err)
		}
		if answers, err := s.FinishAll(ctx, nil); err != nil || len(answers) != 0 {
			t.Errorf("%v, %v for no tokens", answers, err)
		}
	})
}

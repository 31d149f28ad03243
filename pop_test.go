package delaytask

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

func TestPopHandsOutATaskAndItsHolderEndsIt(t *testing.T) {
	t.Parallel()
	f := open(t)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := f.save(t, "a", 0)
	popped, err := f.Pop(t.Context(), "a", PopMax(5), PopTTR(time.Minute), PopAlso("b"))
	if err != nil || len(popped) != 1 || popped[0].ID != id {
		t.Fatalf("popped %v, %v", popped, err)
	}
	p := popped[0]
	for _, ttr := range []time.Duration{0, -time.Second} {
		if err := p.Touch(t.Context(), ttr); !errors.Is(err, ErrInvalidTTR) {
			t.Errorf("touched for %v: %v", ttr, err)
		}
	}
	for _, ttr := range []time.Duration{time.Second, 1 << 62} {
		if err := p.Touch(t.Context(), ttr); err != nil {
			t.Errorf("touched for %v: %v", ttr, err)
		}
	}
	if err := p.Fail(t.Context(), processor.RetryAfter(errors.New("busy"), 0)); err != nil {
		t.Fatal(err)
	}
	if err := p.Finish(t.Context()); !errors.Is(err, ErrLeaseLost) {
		t.Fatalf("finished after Fail: %v", err)
	}
	again, err := f.Pop(t.Context(), "a")
	if err != nil || len(again) != 1 || again[0].Attempt != 2 {
		t.Fatalf("popped %v, %v", again, err)
	}
	if err := again[0].Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if task := f.get(t, id); task.Status != Completed {
		t.Errorf("status %s after Finish", task.Status)
	}
}

func TestPopThatShallNotWaitReturnsWhatIsDue(t *testing.T) {
	t.Parallel()
	f := open(t)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if popped, err := f.Pop(t.Context(), "a", PopWait(0)); err != nil || len(popped) != 0 {
		t.Fatalf("popped %v, %v of an empty table", popped, err)
	}
	id := f.save(t, "a", 0)
	popped, err := f.Pop(t.Context(), "a", PopWait(0))
	for tries := 1; err == nil && len(popped) == 0 && tries < 10; tries++ { // the machine stood still during the claim
		popped, err = f.Pop(t.Context(), "a", PopWait(0))
	}
	if err != nil || len(popped) != 1 || popped[0].ID != id {
		t.Fatalf("popped %v, %v", popped, err)
	}
	if err := popped[0].Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPopRefusesBadArguments(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, c := range map[string]struct {
		tag  string
		opt  PopOption
		want error
	}{
		"a tag that is none":       {"a b", PopMax(1), ErrInvalidTag},
		"another tag that is none": {"a", PopAlso(""), ErrInvalidTag},
		"too many tags":            {"a", PopAlso(slices.Repeat([]string{"b"}, 100)...), ErrInvalidOption},
		"no tasks":                 {"a", PopMax(0), ErrInvalidOption},
		"an option that is nil":    {"a", nil, ErrInvalidOption},
		"a negative wait":          {"a", PopWait(-1), ErrInvalidOption},
		"a negative TTR":           {"a", PopTTR(-1), ErrInvalidTTR},
		"a TTR of ten years":       {"a", PopTTR(87_600 * time.Hour), ErrInvalidTTR},
		"a scheduler not started":  {"a", PopMax(1), ErrNotStarted},
	} {
		if _, err := f.Pop(t.Context(), c.tag, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

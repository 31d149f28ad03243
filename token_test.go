package delaytask

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/seam"
	"github.com/delaytask/delaytask/processor"
)

func TestParseToken(t *testing.T) {
	t.Parallel()
	largest := Token{ID: math.MaxInt64, Version: math.MaxInt64}
	for s, want := range map[string]Token{
		"1.1": {ID: 1, Version: 1}, "794354201396589397.3": {ID: 794354201396589397, Version: 3}, largest.String(): largest,
	} {
		if got, err := ParseToken(s); err != nil || got != want || got.String() != s {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", ".", "1", "1.", ".1", "0.1", "1.0", "01.1", "1.01", "+1.1", "1.+1", "-1.1", "1.-1", " 1.1", "1.1 ", "1 .1", "1.1.1",
		"1,1",
		"1.1\n", "1_0.1", "0x1.1", "1e3.1", "a.b", "9223372036854775808.1", "1.9223372036854775808",
		"١.١", "1.1\x00", strings.Repeat("9", 1<<16),
	} {
		if got, err := ParseToken(s); !errors.Is(err, ErrInvalidToken) || got != (Token{}) || len(err.Error()) > 500 {
			t.Errorf("%.50q: got %v, %v", s, got, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"", "1.1", "7.0", "-1.2", "9223372036854775807.9223372036854775807", "9223372036854775808.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := ParseToken(s)
		if err != nil {
			if !errors.Is(err, ErrInvalidToken) || token != (Token{}) {
				t.Fatalf("%q: %v, %v", s, token, err)
			}
			return
		}
		if token.ID <= 0 || token.Version <= 0 || token.String() != s {
			t.Fatalf("%q is read as %v", s, token)
		}
	})
}

// On every kind of database: one scheduler hands out, another one ends.
func TestTasksAreEndedByTheirTokensOnEveryDatabase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, database dbtest.Database) {
		cfg := Config{Migrate: true, Logger: slog.New(slog.DiscardHandler)}
		schedulers := make([]*Scheduler, 2)
		for i := range schedulers {
			s, err := Open(t.Context(), database.DSN, cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stopOK(t, s) })
			schedulers[i] = s
		}
		here, there := schedulers[0], schedulers[1]
		handed := make(chan Token, 1)
		callBack := processor.Func(func(_ context.Context, task *processor.Task) error {
			handed <- Token{ID: task.ID, Version: task.Version}
			return processor.HandOver(time.Minute)
		})
		if err := here.Register("callback", callBack); err != nil {
			t.Fatal(err)
		}
		if err := here.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		items := make([]Item, 20)
		for i := range items {
			items[i] = Item{Tag: "a", Body: i}
		}
		if _, err := here.SaveDelayTasks(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		var tokens []Token
		for len(tokens) < len(items) {
			popped, err := here.Pop(t.Context(), "a", PopMax(len(items)-len(tokens)))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range popped {
				token, err := ParseToken(p.Token().String())
				if err != nil {
					t.Fatal(err)
				}
				tokens = append(tokens, token)
			}
		}
		if err := there.Touch(t.Context(), tokens[0], time.Minute); err != nil {
			t.Error(err)
		}
		if err := there.Fail(t.Context(), tokens[0], processor.Permanent(errors.New("boom"))); err != nil {
			t.Error(err)
		}
		if err := there.Release(t.Context(), tokens[0]); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("released after Fail: %v", err)
		}
		unknown := Token{ID: 7, Version: 1}
		answers, err := there.FinishAll(t.Context(), append(tokens, tokens[1], unknown, Token{}))
		if err != nil {
			t.Fatal(err)
		}
		want := make([]error, len(answers))
		want[0], want[20], want[21], want[22] = ErrLeaseLost, ErrLeaseLost, ErrNotFound, ErrInvalidToken
		for i := range answers {
			if !errors.Is(answers[i], want[i]) {
				t.Errorf("answer %d: %v, want %v", i, answers[i], want[i])
			}
		}

		id, err := there.SaveDelayTask(t.Context(), "callback", "body", 0)
		if err != nil {
			t.Fatal(err)
		}
		token := <-handed
		if err := there.Finish(t.Context(), token); err != nil {
			t.Error(err)
		}
		if task, err := here.Get(t.Context(), ID(id)); err != nil || task.Status != Completed || task.Version != token.Version+1 {
			t.Errorf("got %+v, %v", task, err)
		}
	})
}

func TestTokensThatCannotBeOne(t *testing.T) {
	t.Parallel()
	f := inMemory(t)
	for _, token := range []Token{{}, {ID: 1}, {Version: 1}, {ID: -1, Version: 1}, {ID: 1, Version: -1}} {
		for what, err := range map[string]error{
			"Finish": f.Finish(t.Context(), token), "Release": f.Release(t.Context(), token),
			"Fail": f.Fail(t.Context(), token, errors.New("boom")), "Touch": f.Touch(t.Context(), token, time.Second),
		} {
			if !errors.Is(err, ErrInvalidToken) {
				t.Errorf("%s %v: %v", what, token, err)
			}
		}
	}
	if err := f.Fail(t.Context(), Token{ID: 1, Version: 1}, nil); !errors.Is(err, ErrInvalidOption) {
		t.Errorf("failed with nil: %v", err)
	}
	if err := f.Touch(t.Context(), Token{ID: 1, Version: 1}, 0); !errors.Is(err, ErrInvalidTTR) {
		t.Errorf("touched for nothing: %v", err)
	}
	if answers, err := f.FinishAll(t.Context(), make([]Token, 10_001)); !errors.Is(err, ErrBatchTooLarge) || answers != nil {
		t.Errorf("%d answers, %v", len(answers), err)
	}
	if answers, err := f.FinishAll(t.Context(), nil); err != nil || len(answers) != 0 {
		t.Errorf("%v, %v for no tokens", answers, err)
	}
}

func TestUnregister(t *testing.T) {
	t.Parallel()
	f := inMemory(t)
	f.serve(t, "a", nothing)
	if !f.Unregister("a") || f.Unregister("a") || f.Unregister("b") {
		t.Error("it does not tell whether the tag had a processor")
	}
	if err := f.Register("a", processor.Func(nothing)); err != nil {
		t.Fatal(err)
	}
}

// The seam of the compatibility routes.
func TestKeysOfAllTagsOnEveryDatabase(t *testing.T) {
	t.Parallel()
	option := func(key string) Option { return seam.SaveOption(key).(Option) }
	dbtest.Each(t, func(t *testing.T, database dbtest.Database) {
		s, err := Open(t.Context(), database.DSN, Config{Migrate: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stopOK(t, s) })
		save := func(tag string, opt Option) (int64, error) {
			return s.SaveDelayTask(t.Context(), tag, "body", time.Hour, opt)
		}
		id, err := save("a", option("s3:7"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := save("b", option("s3:7")); got != id || !errors.Is(err, ErrDuplicate) {
			t.Errorf("saved again as %d, %v", got, err)
		}
		if task, err := s.Get(t.Context(), Key("c", "s3:7")); err != nil || task.ID != id || task.Tag != "a" {
			t.Errorf("found %+v, %v", task, err)
		}
		if _, err := s.Cancel(t.Context(), Key("c", "s3:7")); err != nil {
			t.Error(err)
		}
		if _, err := save("b", option("s3:7")); err != nil {
			t.Error(err)
		}
		for _, opt := range []Option{
			WithKey("s3:8"), option("8"), option(""), option("S3:8"), option("s3:\xff"), option("s3:" + strings.Repeat("é", 253)),
		} {
			if _, err := save("a", opt); !errors.Is(err, ErrInvalidKey) {
				t.Errorf("saved with %v", err)
			}
		}
		if _, err := save("a", option("s3:"+strings.Repeat("é", 252))); err != nil {
			t.Error(err)
		}
		if seam.Store(s) != s.store {
			t.Error("the seam leads to another store")
		}
	})
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// listen makes an engine log into what it returns.
func listen() (*warnings, func(*Config)) {
	logged := &warnings{}
	return logged, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(logged, nil)) }
}

// stacked prints more with %+v, and may panic then.
type stacked struct{ bug bool }

func (stacked) Error() string { return "no such order\nof number 42" }

func (s stacked) Format(f fmt.State, verb rune) {
	if s.bug && f.Flag('+') {
		panic("a bug")
	}
	_, _ = fmt.Fprint(f, s.Error())
	if f.Flag('+') {
		_, _ = fmt.Fprint(f, "\n", strings.Repeat("main.look\n", 2000))
	}
}

func TestFailedAttemptIsLoggedAndItsStackIsKept(t *testing.T) {
	type failure struct {
		err  error
		kept string
	}
	inBubbles(t, map[string]failure{
		"stack": {
			errors.Join(errors.New("a"), fmt.Errorf("look: %w", stacked{})),
			"\n\nno such order\nof number 42\nmain.look\n",
		},
		"bug": {stacked{bug: true}, "PANIC=Format"},
	}, func(w *world, fail failure) {
		logged, log := listen()
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error { return fail.err }}, log)
		id := w.save(e, "a", time.Second, delaytask.WithMaxAttempts(2))
		time.Sleep(10 * time.Second)
		lines := strings.Split(strings.TrimSpace(logged.all()), "\n")
		first, _, _ := strings.Cut(fail.err.Error(), "\n")
		if len(lines) != 2 {
			w.Fatalf("logged %q", lines)
		}
		for i, want := range []string{
			`level=WARN msg="attempt failed" .*version=1 attempt=1 max_attempts=2 err=.*` +
				first + `"? next_attempt_at=2026-01-01T00:00:02`,
			`level=ERROR msg="task failed" .*version=3 attempt=2 max_attempts=2 err=.*` + first + `"?$`,
		} {
			if !regexp.MustCompile(want).MatchString(lines[i]) ||
				!strings.Contains(lines[i], fmt.Sprintf("task=%d tag=a", id)) {
				w.Errorf("logged %s\nwant   %s", lines[i], want)
			}
		}
		r := w.row(id)
		if r.Status != row.Failed || !strings.Contains(r.ErrorStack, fail.kept) ||
			len(r.ErrorStack) > e.cfg.ErrorLimit {
			w.Errorf("%v with %d bytes: %.300q", r.Status, len(r.ErrorStack), r.ErrorStack)
		}
		if strings.Contains(string(r.Errors), "main.look") {
			w.Errorf("the errors of attempts hold the stack: %.300s", r.Errors)
		}
	})
}

func TestFailureOfAPoppedTaskIsLogged(t *testing.T) {
	inBubble(t, func(w *world) {
		logged, log := listen()
		e := w.engine(w.store, nil, log)
		w.save(e, "a", 0, delaytask.WithTTR(5*time.Second))
		w.take(e, "a")
		time.Sleep(6 * time.Second) // its lease ends
		time.Sleep(2 * time.Second)
		task := w.take(e, "a")
		w.must(e.Fail(w.Context(), task.ID, task.Version, errors.New("no such order")))
		wanted := []string{"not finished within its lease", `attempt=2 max_attempts=20 err="no such order"`}
		for _, want := range wanted {
			if !strings.Contains(logged.all(), want) {
				t.Errorf("%q is missing in\n%s", want, logged.all())
			}
		}
	})
}

func TestAFloodIsALineASecondForEachTag(t *testing.T) {
	inBubble(t, func(w *world) {
		logged, log := listen()
		fail := func(context.Context, *delaytask.Task) error { return errors.New("no such order") }
		e := w.engine(w.store, serving{"flood": fail, "rare": fail}, log)
		for i := range 500 {
			w.save(e, "flood", time.Second+time.Duration(i)*10*time.Millisecond, delaytask.WithMaxAttempts(1))
		}
		w.save(e, "rare", 3*time.Second, delaytask.WithMaxAttempts(1))
		time.Sleep(20 * time.Second)
		lines := strings.Split(strings.TrimSpace(logged.all()), "\n")
		told := len(lines)
		for _, held := range regexp.MustCompile(`held_back=(\d+)`).FindAllStringSubmatch(logged.all(), -1) {
			n, err := strconv.Atoi(held[1])
			if err != nil {
				t.Fatal(err)
			}
			told += n
		}
		if told != 501 || len(lines) > 9 || strings.Count(logged.all(), "tag=rare") != 1 {
			t.Errorf("%d lines tell of %d failures, want all 501:\n%s", len(lines), told, logged.all())
		}
	})
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

// both runs a test with the library and with the client of a service: a program cannot tell them apart.
func both(t *testing.T, f func(t *testing.T, s processor.Scheduler)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s, err := delaytask.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"),
			delaytask.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop(context.Background()) })
		f(t, s)
	})
	t.Run("service", func(t *testing.T) {
		t.Parallel()
		f(t, serve(t).client(t))
	})
}

func TestTasksRunInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		type order struct{ Number int }
		ran := make(chan string, 10)
		closeOrder := processor.Typed(func(_ context.Context, task *processor.Task, o order) error {
			ran <- fmt.Sprintln(o.Number, task.Key, task.Attempt, task.Headers, time.Now().Before(task.Expected))
			if task.Attempt == 1 {
				return processor.RetryAfter(errors.New("not yet"), 0)
			}
			return nil
		})
		start(t, s, "order.close", closeOrder)
		id, err := s.SaveDelayTask(t.Context(), "order.close", order{7}, 50*time.Millisecond, processor.WithKey("k"),
			processor.WithHeader("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"7 k 1 map[a:b] false\n", "7 k 2 map[a:b] false\n"} {
			if got := wait(t, ran); got != want {
				t.Errorf("ran %s, want %s", got, want)
			}
		}
		task := settled(t, s, id)
		if task.Status != processor.Completed || task.Attempt != 2 || len(task.Errors) != 1 || task.LastError() == "" ||
			task.Started.Before(task.Expected) || string(task.Body) != `{"Number":7}` || task.Headers["a"] != "b" {
			t.Errorf("got %+v", task)
		}
	})
}

func TestEveryOutcomeOfAProcessorInBothForms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first   func() error // of the first attempt; later ones succeed
		status  processor.Status
		attempt int
		text    string
	}{
		"Completed": {func() error { return nil }, processor.Completed, 1, ""},
		"Permanent": {func() error { return processor.Permanent(errors.New("no use")) }, processor.Failed, 1, "no use"},
		"Snooze":    {func() error { return processor.Snooze(10 * time.Millisecond) }, processor.Completed, 1, ""},
		"RetryAfter": {func() error { return processor.RetryAfter(errors.New("soon"), 0) }, processor.Completed, 2,
			"soon (again after 0s)"},
		"Panic": {func() error { panic(processor.Permanent(errors.New("oh"))) }, processor.Failed, 1, "panic: oh"},
		"Empty": {func() error { return processor.Permanent(errors.New("")) }, processor.Failed, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, s processor.Scheduler) {
				first := make(chan bool, 1)
				first <- true
				start(t, s, "a", processor.Func(func(context.Context, *processor.Task) error {
					select {
					case <-first:
						return tt.first()
					default:
						return nil
					}
				}))
				id, err := s.SaveDelayTask(t.Context(), "a", nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				task := settled(t, s, id)
				if task.Status != tt.status || task.Attempt != tt.attempt || tt.text != "" &&
					task.Errors[0].Error[:len(tt.text)] != tt.text {
					t.Errorf("got %s in attempt %d, errors %v", task.Status, task.Attempt, task.Errors)
				}
			})
		})
	}
}

func TestTasksAreChangedInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		ctx, key := t.Context(), processor.Key("a/b", "..")
		id, err := s.SaveDelayTask(ctx, "a/b", map[string]string{"x": "<é>"}, time.Hour, processor.WithKey(".."),
			processor.WithMaxLateness(time.Minute, processor.LateFail), processor.WithTTR(time.Minute), processor.WithMaxAttempts(3),
			processor.WithPriority(5))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.SaveDelayTask(ctx, "a/b", nil, 0, processor.WithKey("..")); again != id ||
			!errors.Is(err, processor.ErrDuplicate) {
			t.Errorf("a second one: %d, %v", again, err)
		}
		task, err := s.Get(ctx, key)
		if err != nil || task.ID != id || task.Tag != "a/b" || task.Key != ".." || task.Delay != time.Hour ||
			task.TTR != time.Minute ||
			task.MaxAttempts != 3 || task.Priority != 5 || task.MaxLate != time.Minute || task.LatePolicy != processor.LateFail ||
			task.Status != processor.Pending || task.Created.IsZero() || !task.Started.IsZero() {
			t.Errorf("got %+v, %v", task, err)
		}
		if met, err := s.Reschedule(ctx, key, 2*time.Hour); met != processor.Pending || err != nil {
			t.Errorf("Reschedule: %v, %v", met, err)
		}
		at := time.Now().Add(3 * time.Hour).Truncate(time.Second)
		if met, err := s.Reschedule(ctx, processor.ID(id), 0, processor.To(at)); met != processor.Pending || err != nil {
			t.Errorf("Reschedule to a time: %v, %v", met, err)
		}
		if task, err := s.Get(ctx, key); err != nil || !task.Expected.Equal(at) {
			t.Errorf("expected at %v, want %v: %v", task.Expected, at, err)
		}
		e, err := s.Explain(ctx, key)
		if err != nil || e.Reason != processor.ReasonNotDue || e.Text == "" || e.Task.ID != id || e.Task.Body != nil {
			t.Errorf("Explain: %+v, %v", e, err)
		}
		if met, err := s.SetBody(ctx, key, []int{1}); met != processor.Pending || err != nil {
			t.Errorf("SetBody: %v, %v", met, err)
		}
		if met, err := s.Reschedule(ctx, key, time.Hour, processor.Body("[2]")); met != processor.Pending || err != nil {
			t.Errorf("Reschedule with a body: %v, %v", met, err)
		}
		if task, err := s.Get(ctx, key); err != nil || string(task.Body) != "[2]" {
			t.Errorf("the body is %s: %v", task.Body, err)
		}
		if err := s.Retry(ctx, key); !errors.Is(err, processor.ErrNotFailed) {
			t.Errorf("Retry: %v", err)
		}
		if met, err := s.Cancel(ctx, key); met != processor.Pending || err != nil {
			t.Errorf("Cancel: %v, %v", met, err)
		}
		if _, err := s.Cancel(ctx, processor.ID(id)); !errors.Is(err, processor.ErrFinished) {
			t.Errorf("Cancel of a cancelled one: %v", err)
		}
		if _, err := s.Get(ctx, key); !errors.Is(err, processor.ErrNotFound) {
			t.Errorf("a key of no unfinished task: %v", err)
		}
		for _, id := range []int64{0, -1} {
			if _, err := s.Get(ctx, processor.ID(id)); !errors.Is(err, processor.ErrInvalidID) {
				t.Errorf("Get(%d): %v", id, err)
			}
		}
	})
}

func TestListsComePageByPageInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		var items []processor.Item
		for i := range 7 {
			items = append(items, processor.Item{Tag: "a", Body: i, Delay: time.Hour})
		}
		results, err := s.SaveDelayTasks(t.Context(), append(items, processor.Item{Tag: "b", Delay: time.Hour}))
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		filter := processor.Filter{Tag: "a", Status: processor.Pending, DueBefore: time.Now().Add(2 * time.Hour), Limit: 3,
			Bodies: true}
		for pages := 1; ; pages++ {
			page, err := s.List(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range page.Tasks {
				ids = append(ids, task.ID)
				if len(task.Body) != 1 {
					t.Errorf("the body is %q", task.Body)
				}
			}
			if filter.After = page.Next; page.Next == 0 {
				if pages != 3 {
					t.Errorf("%d pages", pages)
				}
				break
			}
		}
		for i, id := range ids {
			if id != results[i].ID {
				t.Errorf("task %d is %d, want %d", i, id, results[i].ID)
			}
		}
		if len(ids) != 7 {
			t.Errorf("%d tasks", len(ids))
		}
		if _, err := s.List(t.Context(), processor.Filter{Tag: "a b"}); !errors.Is(err, processor.ErrInvalidTag) {
			t.Errorf("an invalid tag: %v", err)
		}
	})
}

func TestTasksArePoppedInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		ctx := t.Context()
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if popped, err := s.Pop(ctx, "a", processor.PopWait(0)); len(popped) != 0 || err != nil {
			t.Fatalf("got %v, %v", popped, err)
		}
		_, err := s.SaveDelayTasks(ctx, []processor.Item{
			{Tag: "a", Body: 1}, {Tag: "b", Body: 2}, {Tag: "a", Body: 3, Delay: 200 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		var tokens []processor.Token
		for len(tokens) < 3 {
			popped, err := s.Pop(ctx, "a", processor.PopAlso("b"), processor.PopMax(10), processor.PopTTR(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range popped {
				tokens = append(tokens, p.Token())
				if err := p.Touch(ctx, time.Minute); err != nil || p.Attempt != 1 || len(p.Body) != 1 || p.Due.IsZero() {
					t.Errorf("got %+v, %v", p.Task, err)
				}
			}
		}
		if err := s.Finish(ctx, tokens[0]); err != nil {
			t.Error(err)
		}
		if err := s.Release(ctx, tokens[1]); err != nil {
			t.Error(err)
		}
		answers, err := s.FinishAll(ctx, []processor.Token{tokens[0], {}, tokens[1], tokens[2]})
		if err != nil || !errors.Is(answers[0], processor.ErrLeaseLost) || !errors.Is(answers[1], processor.ErrInvalidToken) ||
			!errors.Is(answers[2], processor.ErrLeaseLost) || answers[3] != nil {
			t.Errorf("got %v, %v", answers, err)
		}
		if _, err := s.Cancel(ctx, processor.ID(tokens[2].ID), processor.OnlyPending()); !errors.Is(err, processor.ErrFinished) {
			t.Errorf("Cancel of a completed one: %v", err)
		}
		again, err := s.Pop(ctx, "a", processor.PopAlso("b"))
		if err != nil || len(again) != 1 || again[0].ID != tokens[1].ID || again[0].Attempt != 1 {
			t.Fatalf("got %v, %v", again, err)
		}
		if _, err := s.Cancel(ctx, processor.ID(again[0].ID), processor.OnlyPending()); !errors.Is(err, processor.ErrNotPending) {
			t.Errorf("Cancel of one that is executing: %v", err)
		}
		if err := again[0].Fail(ctx, processor.Permanent(errors.New("no"))); err != nil {
			t.Error(err)
		}
		if task := settled(t, s, again[0].ID); task.Status != processor.Failed {
			t.Errorf("got %+v", task)
		}
	})
}

func TestTagsArePausedInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		ctx := t.Context()
		ran := make(chan string, 1)
		if err := s.Pause(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		start(t, s, "a", processor.Func(func(context.Context, *processor.Task) error { ran <- "it"; return nil }))
		id, err := s.SaveDelayTask(ctx, "a", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := s.Explain(ctx, processor.ID(id)); err != nil || e.Reason != processor.ReasonPaused {
			t.Errorf("got %+v, %v", e, err)
		}
		stats, err := s.Stats(ctx)
		if err != nil || len(stats) != 1 || !stats[0].Paused || stats[0].Counts[processor.Pending] != 1 ||
			stats[0].OldestPending.IsZero() {
			t.Errorf("got %+v, %v", stats, err)
		}
		tags, err := s.Tags(ctx)
		if err != nil || len(tags) != 1 || tags[0].Tag != "a" || !tags[0].Paused {
			t.Errorf("got %+v, %v", tags, err)
		}
		nodes, err := s.Nodes(ctx)
		if err != nil || len(nodes) != 1 || !nodes[0].Alive || nodes[0].Leaving || nodes[0].PID == 0 || nodes[0].Heartbeat.IsZero() ||
			len(nodes[0].Shares) != len(nodes[0].Tags) {
			t.Errorf("got %+v, %v", nodes, err)
		}
		if err := s.Resume(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		wait(t, ran)
		if task := settled(t, s, id); task.Status != processor.Completed {
			t.Errorf("got %+v", task)
		}
	})
}

func TestATagIsUnregisteredAndTakenUpAgainInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		ran := make(chan string, 1)
		say := func(text string) processor.Func {
			return func(context.Context, *processor.Task) error { ran <- text; return nil }
		}
		save := func() {
			if _, err := s.SaveDelayTask(t.Context(), "a", nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		start(t, s, "a", say("first"))
		save()
		wait(t, ran)
		if !s.Unregister("a") || s.Unregister("a") {
			t.Error("Unregister")
		}
		for i, opts := range [][]processor.RegisterOption{{processor.Concurrency(2)}, nil} {
			if err := s.Register("a", say(fmt.Sprint(i)), opts...); err != nil {
				t.Fatal(err)
			}
			save()
			if got := wait(t, ran); got != fmt.Sprint(i) {
				t.Errorf("%s ran", got)
			}
			s.Unregister("a")
		}
	})
}

func start(t *testing.T, s processor.Scheduler, tag string, p processor.Processor, opts ...processor.RegisterOption) {
	t.Helper()
	if err := s.Register(tag, p, opts...); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case s := <-c:
		return s
	case <-time.After(time.Minute):
		t.Fatal("nothing happened within a minute")
		return ""
	}
}

// settled waits until the task is in a final status.
func settled(t *testing.T, s processor.Scheduler, id int64) processor.Stored {
	t.Helper()
	for tick := time.Tick(5 * time.Millisecond); ; {
		task, err := s.Get(t.Context(), processor.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		if task.Status.Final() {
			return task
		}
		select {
		case <-tick:
		case <-t.Context().Done():
			t.Fatalf("task %d is %s", id, task.Status)
		}
	}
}

// TestOneKeyInTwoAppsIsTwoTasksInBothForms asks by key from within each application, and from outside of both.
func TestOneKeyInTwoAppsIsTwoTasksInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		ctx, key := t.Context(), processor.Key("t", "order-1")
		ids := map[string]int64{}
		for _, app := range []string{"shop", "mall", ""} {
			id, err := s.SaveDelayTask(ctx, "t", nil, time.Hour, processor.WithKey("order-1"), processor.WithApp(app))
			if err != nil {
				t.Fatalf("save in the app %q: %v", app, err)
			}
			ids[app] = id
		}
		again, err := s.SaveDelayTasks(ctx, []processor.Item{
			{Tag: "t", Options: []processor.Option{processor.WithKey("order-1"), processor.WithApp("mall")}},
			{Tag: "t", Options: []processor.Option{processor.WithKey("order-1"), processor.WithApp("zoo")}, Delay: time.Hour},
		})
		if err != nil || again[0].ID != ids["mall"] || !errors.Is(again[0].Err, processor.ErrDuplicate) || again[1].Err != nil {
			t.Errorf("a batch: %+v, %v", again, err)
		}
		for app, id := range ids {
			task, err := s.Get(ctx, key.InApp(app))
			if err != nil || task.ID != id || task.Key != "order-1" || task.App() != app {
				t.Errorf("in the app %q: %+v, %v", app, task, err)
			}
			page, err := s.List(ctx, processor.Filter{Tag: "t", Key: "order-1", App: app})
			if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != id || page.Tasks[0].Key != "order-1" {
				t.Errorf("the list of the app %q: %+v, %v", app, page, err)
			}
		}
		if met, err := s.SetBody(ctx, key.InApp("mall"), 7); met != processor.Pending || err != nil {
			t.Errorf("SetBody: %v, %v", met, err)
		}
		if met, err := s.Reschedule(ctx, key.InApp("mall"), 2*time.Hour); met != processor.Pending || err != nil {
			t.Errorf("Reschedule: %v, %v", met, err)
		}
		if e, err := s.Explain(ctx, key.InApp("mall")); err != nil || e.Task.ID != ids["mall"] {
			t.Errorf("Explain: %+v, %v", e, err)
		}
		if err := s.Retry(ctx, key.InApp("mall")); !errors.Is(err, processor.ErrNotFailed) {
			t.Errorf("Retry: %v", err)
		}
		if met, err := s.Cancel(ctx, key.InApp("mall"), processor.OnlyPending()); met != processor.Pending || err != nil {
			t.Errorf("Cancel: %v, %v", met, err)
		}
		if _, err := s.Get(ctx, key.InApp("mall")); !errors.Is(err, processor.ErrNotFound) {
			t.Errorf("a cancelled one: %v", err)
		}
		for _, app := range []string{"shop", ""} {
			if task, err := s.Get(ctx, key.InApp(app)); err != nil || task.Status != processor.Pending || task.Version != 0 {
				t.Errorf("the app %q was changed: %+v, %v", app, task, err)
			}
		}
	})
}

// TestATaskTellsItsAppAndItsOwnKeyInBothForms looks at what pops and processors are handed.
func TestATaskTellsItsAppAndItsOwnKeyInBothForms(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s processor.Scheduler) {
		save := func(tag string) {
			if _, err := s.SaveDelayTask(t.Context(), tag, nil, 0, processor.WithKey("k"), processor.WithApp("shop")); err != nil {
				t.Fatal(err)
			}
		}
		ran := make(chan string, 1)
		start(t, s, "run", processor.Func(func(_ context.Context, task *processor.Task) error {
			ran <- task.App() + " " + task.Key
			return nil
		}))
		save("run")
		if got := wait(t, ran); got != "shop k" {
			t.Errorf("the processor was handed %q", got)
		}
		save("pop")
		popped, err := s.Pop(t.Context(), "pop")
		if err != nil || len(popped) != 1 || popped[0].App() != "shop" || popped[0].Key != "k" {
			t.Errorf("popped %+v, %v", popped, err)
		}
	})
}

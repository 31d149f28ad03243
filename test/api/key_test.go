package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

func TestOneKeySavedByManyIsOneTask(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		schedulers := []*scheduler.Scheduler{open(t, d), open(t, d)}
		var mu sync.Mutex
		stored, ids := 0, map[int64]bool{}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				id, err := schedulers[i%2].SaveDelayTask(t.Context(), "t", i, time.Hour, delaytask.WithKey("k"))
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
				if err == nil {
					stored++
				} else if !errors.Is(err, delaytask.ErrDuplicate) {
					t.Errorf("save: %v", err)
				}
			})
		}
		wg.Wait()
		if stored != 1 || len(ids) != 1 {
			t.Errorf("%d saves were stored under %d ids, want 1 and 1", stored, len(ids))
		}
	})
}

func TestTwoClientsWithTheSameBatchGetTheSameTasks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		clients := []*scheduler.Scheduler{open(t, d), open(t, d)}
		items := make([]delaytask.Item, 1510) // three chunks, and a rest
		for i := range items {
			key := delaytask.WithKey(fmt.Sprint("k", i))
			items[i] = delaytask.Item{Tag: "t", Delay: time.Hour, Options: []delaytask.Option{key}}
		}
		answers := make([][]delaytask.SaveResult, 4)
		var group sync.WaitGroup
		for i := range answers {
			group.Go(func() {
				var err error
				if answers[i], err = clients[i%2].SaveDelayTasks(t.Context(), items); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		group.Wait()
		for i := range items {
			fresh := 0
			for _, results := range answers {
				if len(results) != len(items) || results[i].ID != answers[0][i].ID {
					t.Fatalf("task %d: the answers differ", i)
				}
				if results[i].Err == nil {
					fresh++
				}
			}
			if fresh != 1 {
				t.Errorf("task %d was new to %d clients", i, fresh)
			}
		}
		if n := total(t, clients[0]); n != int64(len(items)) {
			t.Errorf("%d tasks are stored, want %d", n, len(items))
		}
	})
}

func TestKeyIsFreeAgainWhenItsTaskIsFinished(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		first := save(t, s, "t", time.Hour, delaytask.WithKey("k"))
		id, err := s.SaveDelayTask(t.Context(), "t", 2, time.Hour, delaytask.WithKey("k"))
		if named, _ := errors.AsType[*delaytask.DuplicateError](err); id != first || named == nil || named.ID != first {
			t.Errorf("while unfinished: %d, %v, want %d", id, err, first)
		}
		if met, err := s.Cancel(t.Context(), delaytask.Key("t", "k")); met != delaytask.Pending || err != nil {
			t.Fatalf("cancel by key: %v, %v", met, err)
		}
		if id := save(t, s, "t", time.Hour, delaytask.WithKey("k")); id == first {
			t.Errorf("when finished: %d again, want a new task", id)
		}
	})
}

// Pairs of app and key that a naive encoding would confuse.
func TestNoKeyMeetsThatOfAnotherApp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		longest := strings.Repeat("é", 255-len(row.AppKey)-len("|")-128)
		pairs := [][2]string{
			{"", "k"}, {"a", "k"}, {"A", "k"}, {"a:b", "k"}, {"a", "b|k"}, {"a", "b:k"}, {"", "a|k"}, {"", "a:k"},
			{"a:b", "|k"}, {"a", ":b|k"},
			{"a", "k "}, {"", "delaytask-app"}, {strings.Repeat("a", 128), longest},
		}
		for _, pair := range pairs {
			inApp, withKey := delaytask.WithApp(pair[0]), delaytask.WithKey(pair[1])
			if _, err := s.SaveDelayTask(t.Context(), "t", pair[0], time.Hour, inApp, withKey); err != nil {
				t.Errorf("%q: %v", pair, err)
			}
		}
		for _, pair := range pairs {
			task, err := s.Get(t.Context(), delaytask.Key("t", pair[1]).InApp(pair[0]))
			if err != nil || string(task.Body) != pair[0] || task.App() != pair[0] || task.Key != pair[1] {
				t.Errorf("%q: got %+v, %v", pair, task, err)
			}
		}
		for _, refused := range []struct {
			app, key string
			want     error
		}{
			{"", row.AppKey + "a|k", delaytask.ErrInvalidKey},
			{"b", row.AppKey + "a|k", delaytask.ErrInvalidKey},
			{"a", "s3:k", delaytask.ErrInvalidKey},
			{"a b", "k", delaytask.ErrInvalidOption},
			{"a|", "k", delaytask.ErrInvalidOption},
			{strings.Repeat("a", 129), "k", delaytask.ErrInvalidOption},
			{strings.Repeat("a", 128), longest + "x", delaytask.ErrInvalidKey},
		} {
			_, err := s.SaveDelayTask(t.Context(), "t", nil, 0, delaytask.WithApp(refused.app),
				delaytask.WithKey(refused.key))
			if !errors.Is(err, refused.want) {
				t.Errorf("save of %q in %q: %v, want %v", refused.key, refused.app, err, refused.want)
			}
			if _, err := s.Get(t.Context(), delaytask.Key("t", refused.key).InApp(refused.app)); err == nil {
				t.Errorf("%q in %q finds a task", refused.key, refused.app)
			}
		}

		// Rows of an older version, and of plain SQL.
		for _, key := range []string{"old", row.ScopedKey("shop", "plain")} {
			servertest.Exec(t, d.DSN,
				"INSERT INTO delay_task_message (tag, task_key, message_body, delay_time, headers)"+
					" VALUES ('t', ?, '1', 3600000, '{\"delaytask-app\": \"shop\"}')", key)
		}
		task, err := s.Get(t.Context(), delaytask.Key("t", "old"))
		if err != nil || task.Key != "old" || task.App() != "shop" {
			t.Errorf("a key outside of its app: %+v, %v", task, err)
		}
		if task, err := s.Get(t.Context(), delaytask.Key("t", "plain").InApp("shop")); err != nil ||
			task.Key != "plain" {
			t.Errorf("a key within its app: %+v, %v", task, err)
		}
		_, err = s.SaveDelayTask(t.Context(), "t", nil, 0, delaytask.WithKey("plain"), delaytask.WithApp("shop"))
		wantError(t, "the same key", err, delaytask.ErrDuplicate)
	})
}

// Each call by key names an application, and changes no task of another.
func TestOneKeyInTwoAppsIsTwoTasks(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx, key := t.Context(), delaytask.Key("t", "order-1")
		ids := map[string]int64{}
		for _, app := range []string{"shop", "mall", ""} {
			ids[app] = save(t, s, "t", time.Hour, delaytask.WithKey("order-1"), delaytask.WithApp(app))
		}
		again, err := s.SaveDelayTasks(ctx, []delaytask.Item{
			{Tag: "t", Options: []delaytask.Option{delaytask.WithKey("order-1"), delaytask.WithApp("mall")}},
			{Tag: "t", Options: []delaytask.Option{delaytask.WithKey("order-1"), delaytask.WithApp("zoo")},
				Delay: time.Hour},
		})
		if err != nil || again[0].ID != ids["mall"] || !errors.Is(again[0].Err, delaytask.ErrDuplicate) ||
			again[1].Err != nil {
			t.Errorf("a batch: %+v, %v", again, err)
		}
		for app, id := range ids {
			task, err := s.Get(ctx, key.InApp(app))
			if err != nil || task.ID != id || task.Key != "order-1" || task.App() != app {
				t.Errorf("in the app %q: %+v, %v", app, task, err)
			}
			page, err := s.List(ctx, delaytask.Filter{Tag: "t", Key: "order-1", App: app})
			if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != id || page.Tasks[0].Key != "order-1" {
				t.Errorf("the list of the app %q: %+v, %v", app, page, err)
			}
		}
		mall := key.InApp("mall")
		if e, err := s.Explain(ctx, mall); err != nil || e.Task.ID != ids["mall"] {
			t.Errorf("Explain: %+v, %v", e, err)
		}
		_, body := s.SetBody(ctx, mall, 7)
		_, move := s.Reschedule(ctx, mall, 2*time.Hour)
		wantError(t, "Retry", s.Retry(ctx, mall), delaytask.ErrNotFailed)
		_, cancel := s.Cancel(ctx, mall, delaytask.OnlyPending())
		wantError(t, "the changes", errors.Join(body, move, cancel), nil)
		_, gone := s.Get(ctx, mall)
		wantError(t, "a cancelled one", gone, delaytask.ErrNotFound)
		for _, app := range []string{"shop", ""} {
			if task, err := s.Get(ctx, key.InApp(app)); err != nil || task.Status != delaytask.Pending ||
				task.Version != 0 {
				t.Errorf("the app %q was changed: %+v, %v", app, task, err)
			}
		}

		// Pops and processors get the app, and the key as it was given.
		ran := make(chan string, 1)
		start(t, s, "run", func(_ context.Context, task *delaytask.Task) error {
			ran <- task.App() + " " + task.Key
			return nil
		})
		save(t, s, "run", 0, delaytask.WithKey("k"), delaytask.WithApp("shop"))
		if got := wait(t, ran); got != "shop k" {
			t.Errorf("the processor was handed %q", got)
		}
		save(t, s, "pop", 0, delaytask.WithKey("k"), delaytask.WithApp("shop"))
		popped, err := s.Pop(ctx, "pop")
		if err != nil || len(popped) != 1 || popped[0].App() != "shop" || popped[0].Key != "k" {
			t.Errorf("popped %+v, %v", popped, err)
		}
	})
}

// The service gives the tasks of the old protocols such keys.
func TestKeysOfAllTags(t *testing.T) {
	t.Parallel()
	s, _ := embedded(t)
	option := func(key string) delaytask.Option { return core.WithGlobalKey(key) }
	id := save(t, s, "a", time.Hour, option("s3:7"))
	got, err := s.SaveDelayTask(t.Context(), "b", 1, 0, option("s3:7"))
	if got != id || !errors.Is(err, delaytask.ErrDuplicate) {
		t.Errorf("saved again as %d, %v", got, err)
	}
	if task, err := s.Get(t.Context(), delaytask.Key("c", "s3:7")); err != nil || task.ID != id || task.Tag != "a" {
		t.Errorf("found %+v, %v", task, err)
	}
	if _, err := s.Cancel(t.Context(), delaytask.Key("c", "s3:7")); err != nil {
		t.Error(err)
	}
	save(t, s, "b", time.Hour, option("s3:7"))
	save(t, s, "a", time.Hour, option("s3:"+strings.Repeat("é", 252)))
	for _, key := range []string{"8", "", "S3:8", "s3:\xff", "s3:" + strings.Repeat("é", 253)} {
		_, err := s.SaveDelayTask(t.Context(), "a", 1, 0, option(key))
		wantError(t, key, err, delaytask.ErrInvalidKey)
	}
}

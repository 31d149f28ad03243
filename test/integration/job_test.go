package integration

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

func TestTaskIsSavedRunsAndIsCompleted(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		ran := make(chan *processor.Task, 1)
		serve(t, s, "order.close", func(_ context.Context, task *processor.Task) error {
			ran <- task
			return nil
		})
		id, err := s.SaveDelayTask(t.Context(), "order.close", map[string]int{"order": 7}, 300*time.Millisecond,
			delaytask.WithKey("order 7"), delaytask.WithHeader("trace", "é"), delaytask.WithMaxAttempts(7),
			delaytask.WithPriority(-3), delaytask.WithTTR(20*time.Second),
			delaytask.WithMaxLateness(time.Hour, delaytask.LateFail))
		if err != nil {
			t.Fatal(err)
		}
		seen := receive(t, ran, "task runs")
		stored := reaches(t, s, id, delaytask.Completed)
		if seen.ID != id || seen.Tag != "order.close" || seen.Key != "order 7" || string(seen.Body) != `{"order":7}` ||
			seen.Attempt != 1 || seen.Version != 1 || seen.Headers["trace"] != "é" || seen.Priority != -3 ||
			!seen.Expected.Equal(stored.Expected) || !seen.Due.Equal(stored.Expected) {
			t.Errorf("the processor saw %+v", seen)
		}

		row := columns(t, db, id)
		want := map[string]string{
			"id": fmt.Sprint(id), "tag": "order.close", "task_key": "order 7", "active_key": "NULL",
			"message_body": `{"order":7}`, "status": "1", "version": "2", "attempt": "1",
			"max_attempts": "7", "crash_count": "0", "ttr": "20000", "priority": "-3",
			"max_late_ms": "3600000", "late_policy": "2", "delay_time": "300", "error_stack": "NULL", "errors": "NULL",
		}
		for column, value := range want {
			if row[column] != value {
				t.Errorf("%s is %q, want %q", column, row[column], value)
			}
		}
		if headers := strings.ReplaceAll(row["headers"], " ", ""); headers != `{"trace":"é"}` {
			t.Errorf("headers are %q", headers)
		}
		if !regexp.MustCompile(`^.+:\d+:[0-9a-f]{16}:\d+$`).MatchString(row["executor"]) {
			t.Errorf("executor is %q", row["executor"])
		}
		const layout = "2006-01-02 15:04:05.000000"
		at := map[string]time.Time{}
		for column := range row {
			if !strings.HasSuffix(column, "_time") || column == "delay_time" {
				continue
			}
			at[column], err = time.Parse(layout, row[column])
			if err != nil {
				t.Errorf("%s: %v", column, err)
			}
		}
		within(t, time.Second, at["expected_time"], at["execution_time"], "lateness")
		within(t, time.Second, at["execution_time"], at["finish_time"], "run")
		if at["due_time"] != at["finish_time"] || at["update_time"].Before(at["finish_time"]) {
			t.Errorf("due %v, finished %v, updated %v", at["due_time"], at["finish_time"], at["update_time"])
		}
		if skew := time.Since(at["create_time"]).Abs(); skew > time.Minute {
			t.Errorf("made at %v, which is %v from now: not UTC?", at["create_time"], skew)
		}
		sameTimes := stored.Started.Equal(at["execution_time"]) && stored.Finished.Equal(at["finish_time"])
		if stored.Headers["trace"] != "é" || !sameTimes {
			t.Errorf("Get shows %+v", stored)
		}
	})
}

func TestErrorsOfEveryAttemptAreKept(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		serve(t, s, "t", func(_ context.Context, task *processor.Task) error {
			switch {
			case task.Attempt == 1:
				return errors.New("nicht erreichbar: 'é' \\ \x00 😀")
			case task.Attempt == 2:
				panic("second")
			case task.Headers["end"] == "fails":
				return processor.Permanent(errors.New("third"))
			}
			return nil
		})
		completed, failed := save(t, s, "t", 0), save(t, s, "t", 0, delaytask.WithHeader("end", "fails"))
		task := reaches(t, s, completed, delaytask.Completed)
		if task.Attempt != 3 || len(task.Errors) != 2 || task.Errors[0].N != 1 ||
			!strings.Contains(task.Errors[0].Error, "é' \\ \x00 😀") ||
			!strings.Contains(task.Errors[1].Error, "second") || !task.Started.Equal(task.Errors[0].Started) {
			t.Errorf("completed: %+v", task)
		}
		task = reaches(t, s, failed, delaytask.Failed)
		if task.Attempt != 3 || len(task.Errors) != 3 || task.ErrorStack != "third" || task.Finished.IsZero() {
			t.Errorf("failed: %+v", task)
		}
	})
}

func TestKeyIsUniqueAcrossSchedulers(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		schedulers := []*delaytask.Scheduler{open(t, d), open(t, d)}
		var mu sync.Mutex
		fresh, ids := 0, map[int64]bool{}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				id, err := schedulers[i%2].SaveDelayTask(t.Context(), "t", nil, time.Hour, delaytask.WithKey("k"))
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
				if err == nil {
					fresh++
				} else if !errors.Is(err, delaytask.ErrDuplicate) {
					t.Errorf("save: %v", err)
				}
			})
		}
		wg.Wait()
		if fresh != 1 || len(ids) != 1 {
			t.Errorf("%d saves were stored under %d ids, want 1 and 1", fresh, len(ids))
		}
		if _, err := schedulers[0].Cancel(t.Context(), delaytask.Key("t", "k")); err != nil {
			t.Fatal(err)
		}
		if id := save(t, schedulers[1], "t", time.Hour, delaytask.WithKey("k")); ids[id] {
			t.Errorf("after the cancel: got the old id %d", id)
		}
	})
}

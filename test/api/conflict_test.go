package api

import (
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

// Each mode meets a key without a task, with a pending, an executing, and a finished one. Its times lie before and
// after that of the existing task.
func TestModeOfASaveMeetsATaskWithItsKey(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		for _, c := range []struct {
			mode          processor.ConflictMode
			earlier, body bool // whether an earlier time, and the body, are taken
			later         bool
		}{
			{mode: processor.KeepExisting},
			{mode: processor.ReplaceTime, earlier: true, later: true},
			{mode: processor.ReplaceTimeAndBody, earlier: true, later: true, body: true},
			{mode: processor.OnlyEarlier, earlier: true},
			{mode: processor.OnlyLater, later: true},
		} {
			t.Run(string(c.mode), func(t *testing.T) {
				tag := string(c.mode)
				save := func(body string, delay time.Duration) (int64, error) {
					return s.SaveDelayTask(t.Context(), tag, body, delay, processor.WithKey("k"),
						processor.WithOnConflict(c.mode))
				}
				for delay, taken := range map[time.Duration]bool{time.Minute: c.earlier, 2 * time.Hour: c.later} {
					existing, err := save(`"old"`, time.Hour)
					servertest.OK(t, err)
					id, err := save(`"new"`, delay)
					duplicate, _ := errors.AsType[*processor.DuplicateError](err)
					if id != existing || taken != (err == nil) || !taken && (duplicate == nil || duplicate.ID != id) {
						t.Errorf("%v: saved as %d, %v, want %d", delay, id, err, existing)
					}
					want := processor.TaskRow{Delay: time.Hour, Body: []byte(`"old"`)}
					if taken {
						want.Delay, want.Version = delay, 1
					}
					if taken && c.body {
						want.Body = []byte(`"new"`)
					}
					if got := get(t, s, id); got.Delay != want.Delay || got.Version != want.Version ||
						string(got.Body) != string(want.Body) ||
						got.Due.Sub(got.Created).Round(time.Minute) != want.Delay {
						t.Errorf("%v: the task is %+v", delay, got)
					}
					_, err = s.Cancel(t.Context(), processor.ID(id))
					servertest.OK(t, err)
				}

				existing, err := save(`"old"`, 0) // beside finished tasks
				servertest.OK(t, err)
				start(t, s, tag+"/unused", nothing)
				popped, err := s.Pop(t.Context(), tag, processor.PopWait(10*time.Second))
				servertest.OK(t, err)
				if len(popped) != 1 || popped[0].ID != existing {
					t.Fatalf("popped %+v, want task %d", popped, existing)
				}
				id, err := save(`"new"`, time.Minute)
				busy, _ := errors.AsType[*processor.NotPendingError](err)
				if c.mode == processor.KeepExisting {
					wantError(t, "while it is executing", err, processor.ErrDuplicate)
				} else if !errors.Is(err, processor.ErrNotPending) || busy == nil || busy.ID != existing {
					t.Errorf("while it is executing: %v", err)
				}
				if got := get(t, s, id); id != existing || string(got.Body) != `"old"` || got.Version != 1 {
					t.Errorf("the executing task %d was changed: %+v", id, got)
				}
				servertest.OK(t, popped[0].Finish(t.Context()))
				if id, err = save(`"new"`, time.Hour); id == existing || err != nil {
					t.Errorf("after its end: saved as %d, %v", id, err)
				}
			})
		}
	})
}

func TestBatchReschedulesInTheOrderOfItsItems(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		pending := save(t, s, "t", time.Hour, processor.WithKey("pending"))
		busy := save(t, s, "t", 0, processor.WithKey("busy"))
		start(t, s, "unused", nothing)
		popped, err := s.Pop(t.Context(), "t", processor.PopWait(10*time.Second))
		if err != nil || len(popped) != 1 || popped[0].ID != busy {
			t.Fatalf("popped %+v, %v", popped, err)
		}
		item := func(key string, mode processor.ConflictMode, delay time.Duration, body int) processor.Item {
			return processor.Item{Tag: "t", Body: body, Delay: delay, Options: []processor.Option{
				processor.WithKey(key), processor.WithOnConflict(mode)}}
		}
		results, err := s.SaveDelayTasks(t.Context(), []processor.Item{
			item("pending", processor.OnlyEarlier, time.Minute, 10),
			item("pending", processor.OnlyEarlier, time.Hour, 11),
			item("new", processor.ReplaceTimeAndBody, time.Hour, 12),
			item("new", processor.ReplaceTimeAndBody, 3*time.Hour, 13),
			item("new", processor.OnlyLater, 2*time.Hour, 14),
			item("busy", processor.ReplaceTime, time.Hour, 15),
			item("other", processor.KeepExisting, time.Hour, 16),
		})
		wantError(t, "the batch", err, processor.ErrNotPending)
		if len(results) != 7 {
			t.Fatalf("%d results", len(results))
		}
		fresh := results[2].ID
		for i, want := range []struct {
			id          int64
			rescheduled bool
			err         error
		}{
			{pending, true, nil}, {pending, false, processor.ErrDuplicate},
			{fresh, false, nil}, {fresh, true, nil}, {fresh, false, processor.ErrDuplicate},
			{busy, false, processor.ErrNotPending}, {results[6].ID, false, nil},
		} {
			if r := results[i]; r.ID != want.id || r.Rescheduled != want.rescheduled || !errors.Is(r.Err, want.err) {
				t.Errorf("item %d: %+v, want %+v", i, r, want)
			}
		}
		for id, want := range map[int64]time.Duration{pending: time.Minute, fresh: 3 * time.Hour} {
			if got := get(t, s, id); got.Delay != want {
				t.Errorf("task %d is due after %v, want %v", id, got.Delay, want)
			}
		}
		if got := get(t, s, fresh); string(got.Body) != "13" {
			t.Errorf("the body is %s, want that of the last item that replaces it", got.Body)
		}
	})
}

func TestOptionsOnConflictAreChecked(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		key, replace := processor.WithKey("k"), processor.WithOnConflict(processor.ReplaceTime)
		for name, opts := range map[string][]processor.Option{
			"no key":             {replace},
			"an empty key":       {processor.WithKey(""), replace},
			"an unknown mode":    {key, processor.WithOnConflict("replace")},
			"a wait and no mode": {key, processor.WithMaxWait(time.Hour)},
			"a wait and to keep": {key, processor.WithMaxWait(1), processor.WithOnConflict(processor.KeepExisting)},
			"a negative wait":    {key, replace, processor.WithMaxWait(-1)},
		} {
			_, err := s.SaveDelayTask(t.Context(), "t", 1, time.Hour, opts...)
			wantError(t, name, err, processor.ErrInvalidOption)
		}
		id := save(t, s, "t", time.Hour, key, replace, processor.WithMaxWait(time.Minute))
		if got := get(t, s, id); got.Delay != time.Minute {
			t.Errorf("with a max wait of 1m it is due after %v", got.Delay)
		}
	})
}

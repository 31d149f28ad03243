package api

import (
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// Each mode meets a key without a task, with a pending, an executing, and a finished one. Its times lie before and
// after the existing task's time.
func TestModeOfASaveMeetsATaskWithItsKey(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		for _, c := range []struct {
			mode          delaytask.ConflictMode
			earlier, body bool // whether an earlier time, and the body, are taken
			later         bool
		}{
			{mode: delaytask.KeepExisting},
			{mode: delaytask.ReplaceTime, earlier: true, later: true},
			{mode: delaytask.ReplaceTimeAndBody, earlier: true, later: true, body: true},
			{mode: delaytask.OnlyEarlier, earlier: true},
			{mode: delaytask.OnlyLater, later: true},
		} {
			t.Run(string(c.mode), func(t *testing.T) {
				tag := string(c.mode)
				save := func(body string, delay time.Duration) (int64, error) {
					return s.SaveDelayTask(t.Context(), tag, body, delay, delaytask.WithKey("k"),
						delaytask.WithOnConflict(c.mode))
				}
				for delay, taken := range map[time.Duration]bool{time.Minute: c.earlier, 2 * time.Hour: c.later} {
					existing, err := save(`"old"`, time.Hour)
					servertest.OK(t, err)
					id, err := save(`"new"`, delay)
					duplicate, _ := errors.AsType[*delaytask.DuplicateError](err)
					if id != existing || taken != (err == nil) || !taken && (duplicate == nil || duplicate.ID != id) {
						t.Errorf("%v: saved as %d, %v, want %d", delay, id, err, existing)
					}
					want := delaytask.TaskRow{Delay: time.Hour, Body: []byte(`"old"`)}
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
					_, err = s.Cancel(t.Context(), delaytask.ID(id))
					servertest.OK(t, err)
				}

				existing, err := save(`"old"`, 0) // beside finished tasks
				servertest.OK(t, err)
				start(t, s, tag+"/unused", nothing)
				popped, err := s.Pop(t.Context(), tag, delaytask.PopWait(10*time.Second))
				servertest.OK(t, err)
				if len(popped) != 1 || popped[0].ID != existing {
					t.Fatalf("popped %+v, want task %d", popped, existing)
				}
				id, err := save(`"new"`, time.Minute)
				busy, _ := errors.AsType[*delaytask.NotPendingError](err)
				if c.mode == delaytask.KeepExisting {
					wantError(t, "while it is executing", err, delaytask.ErrDuplicate)
				} else if !errors.Is(err, delaytask.ErrNotPending) || busy == nil || busy.ID != existing {
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
		pending := save(t, s, "t", time.Hour, delaytask.WithKey("pending"))
		busy := save(t, s, "t", 0, delaytask.WithKey("busy"))
		start(t, s, "unused", nothing)
		popped, err := s.Pop(t.Context(), "t", delaytask.PopWait(10*time.Second))
		if err != nil || len(popped) != 1 || popped[0].ID != busy {
			t.Fatalf("popped %+v, %v", popped, err)
		}
		item := func(key string, mode delaytask.ConflictMode, delay time.Duration, body int) delaytask.Item {
			return delaytask.Item{Tag: "t", Body: body, Delay: delay, Options: []delaytask.Option{
				delaytask.WithKey(key), delaytask.WithOnConflict(mode)}}
		}
		results, err := s.SaveDelayTasks(t.Context(), []delaytask.Item{
			item("pending", delaytask.OnlyEarlier, time.Minute, 10),
			item("pending", delaytask.OnlyEarlier, time.Hour, 11),
			item("new", delaytask.ReplaceTimeAndBody, time.Hour, 12),
			item("new", delaytask.ReplaceTimeAndBody, 3*time.Hour, 13),
			item("new", delaytask.OnlyLater, 2*time.Hour, 14),
			item("busy", delaytask.ReplaceTime, time.Hour, 15),
			item("other", delaytask.KeepExisting, time.Hour, 16),
		})
		wantError(t, "the batch", err, delaytask.ErrNotPending)
		if len(results) != 7 {
			t.Fatalf("%d results", len(results))
		}
		fresh := results[2].ID
		for i, want := range []struct {
			id          int64
			rescheduled bool
			err         error
		}{
			{pending, true, nil}, {pending, false, delaytask.ErrDuplicate},
			{fresh, false, nil}, {fresh, true, nil}, {fresh, false, delaytask.ErrDuplicate},
			{busy, false, delaytask.ErrNotPending}, {results[6].ID, false, nil},
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
			t.Errorf("the body is %s, want the last item's that replaces it", got.Body)
		}
	})
}

func TestOptionsOnConflictAreChecked(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		key, replace := delaytask.WithKey("k"), delaytask.WithOnConflict(delaytask.ReplaceTime)
		for name, opts := range map[string][]delaytask.Option{
			"no key":             {replace},
			"an empty key":       {delaytask.WithKey(""), replace},
			"an unknown mode":    {key, delaytask.WithOnConflict("replace")},
			"a wait and no mode": {key, delaytask.WithMaxWait(time.Hour)},
			"a wait and to keep": {key, delaytask.WithMaxWait(1), delaytask.WithOnConflict(delaytask.KeepExisting)},
			"a negative wait":    {key, replace, delaytask.WithMaxWait(-1)},
		} {
			_, err := s.SaveDelayTask(t.Context(), "t", 1, time.Hour, opts...)
			wantError(t, name, err, delaytask.ErrInvalidOption)
		}
		id := save(t, s, "t", time.Hour, key, replace, delaytask.WithMaxWait(time.Minute))
		if got := get(t, s, id); got.Delay != time.Minute {
			t.Errorf("with a max wait of 1m it is due after %v", got.Delay)
		}
	})
}

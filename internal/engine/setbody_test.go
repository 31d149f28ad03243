package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// handedOver checks that the task ran once, on time, and with the body.
func (w *world) handedOver(id int64, body string) {
	w.Helper()
	w.completed(id, 2*time.Millisecond)
	if got := string(w.runs.of(id)[0].task.Body); got != body {
		w.Errorf("task %d was handed over with the body %q, want %q", id, got, body)
	}
}

// No look-ahead comes in between here: the change of the body must replace the armed timer.
func TestNewBodyIsHandedOverOnTime(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing}, func(c *Config) {
			c.LookAhead, c.Window = time.Minute, 2*time.Minute
		})
		time.Sleep(time.Second)
		for _, delay := range []time.Duration{100 * time.Millisecond, 4 * time.Second, 30 * time.Second} {
			id := w.save(e, "a", delay)
			synctest.Wait()
			for _, body := range []string{"first", "second"} {
				met, err := e.SetBody(w.Context(), control.Ref{ID: id}, []byte(body))
				if met != row.Pending || err != nil {
					w.Fatalf("met %v, %v", met, err)
				}
			}
			time.Sleep(delay + time.Second)
			w.handedOver(id, "second")
		}
	})
}

func TestNewBodyFromAnotherNodeIsHandedOverOnTime(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		other := w.idle(w.store, nil)
		time.Sleep(time.Second)
		id := w.save(e, "a", 4*time.Second)
		_, err := other.SetBody(w.Context(), control.Ref{ID: id}, []byte("new"))
		w.must(err)
		time.Sleep(6 * time.Second)
		w.handedOver(id, "new")
	})
}

// The change of one caller never arrives, and another caller's leaves the row at the same version, with the same body.
func TestAChangeOfUnknownOutcomeIsNotTakenForAnothers(t *testing.T) {
	inBubble(t, func(w *world) {
		other := w.idle(w.store, nil)
		var id int64
		var putOff sync.Once
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (applied int, err error) {
			met := false
			putOff.Do(func() {
				met = true
				_, err = other.Reschedule(ctx, nil, control.Ref{ID: id}, time.Minute, time.Time{}, []byte("new"))
			})
			if met {
				return 0, cmp.Or(err, classError(row.ClassUnknown, "the connection is gone"))
			}
			return w.store.Update(ctx, nil, changes)
		}}, serving{"a": nothing})
		time.Sleep(time.Second)
		id = w.save(e, "a", 4*time.Second)
		_, err := e.SetBody(w.Context(), control.Ref{ID: id}, []byte("new"))
		w.must(err)
		time.Sleep(30 * time.Second)
		if runs := w.runs.of(id); len(runs) > 0 {
			w.Fatalf("it ran at %v, although it was put off by a minute", runs[0].at)
		}
		time.Sleep(40 * time.Second)
		w.handedOver(id, "new")
	})
}

func TestNewBodyKeepsAttemptsAndTheTimeOfTheNext(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": func(_ context.Context, task *delaytask.Task) error {
			if string(task.Body) != "good" {
				return errors.New("a bad body")
			}
			return nil
		}}, func(c *Config) { c.Backoff = processor.Constant(10 * time.Second) })
		time.Sleep(time.Second)
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		before := w.row(id)
		_, err := e.SetBody(w.Context(), control.Ref{ID: id}, []byte("good"))
		w.must(err)
		after := w.row(id)
		if after.Attempt != 1 || after.Due != before.Due ||
			after.Execution != before.Execution || after.Execution.IsZero() ||
			string(after.Errors) != string(before.Errors) ||
			after.ErrorStack != before.ErrorStack {
			w.Errorf("got %+v, want %+v", after, before)
		}
		time.Sleep(20 * time.Second)
		runs := w.runs.of(id)
		if r := w.row(id); r.Status != row.Completed || r.Attempt != 2 || len(runs) != 2 {
			w.Fatalf("%d runs: %+v", len(runs), r)
		}
		if late := runs[1].at.Sub(before.Due.Std()); late > 2*time.Millisecond {
			w.Errorf("the second attempt started %v late", late)
		}
	})
}

func TestNewBodyOfARowThatHasNoDueTimeYet(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(1500 * time.Millisecond)
		id := w.save(e, "a", 10*time.Second)
		r := w.row(id)
		r.Due, r.Version = 0, r.Version+1
		w.store.Plant(r)
		_, err := e.SetBody(w.Context(), control.Ref{ID: id}, []byte("new"))
		w.must(err)
		time.Sleep(20 * time.Second)
		w.handedOver(id, "new")
	})
}

// Both changes lead from pending to pending, so the version alone does not tell whose was applied.
func TestLostReplyOfANewBodyIsNotTakenForAnotherOne(t *testing.T) {
	inBubbles(t, map[string]bool{"Ours": false, "AnotherOne": true}, func(w *world, othersFirst bool) {
		calls := 0
		e := w.idle(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if calls++; calls > 1 {
				return w.store.Update(ctx, nil, changes)
			}
			if othersFirst {
				changes[0].Body = []byte("another")
			}
			if n, err := w.store.Update(ctx, nil, changes); n != 1 || err != nil {
				w.Errorf("applied %d, %v", n, err)
			}
			return 0, classError(row.ClassUnknown, "the reply was lost")
		}}, nil)
		id := w.save(e, "a", time.Hour)
		_, err := e.SetBody(w.Context(), control.Ref{ID: id}, []byte("ours"))
		w.must(err)
		want := int64(1)
		if othersFirst {
			want = 2
		}
		if r := w.row(id); string(r.Body) != "ours" || r.Version != want {
			w.Errorf("the body is %q at version %d, want ours at %d", r.Body, r.Version, want)
		}
	})
}

// The statement of a lost reply is applied when its outcome has been looked for already.
func TestChangeThatIsAppliedLateIsNotReportedAsItsOwnConflict(t *testing.T) {
	inBubble(t, func(w *world) {
		calls := 0
		e := w.idle(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if calls++; calls > 1 {
				return w.store.Update(ctx, nil, changes)
			}
			time.AfterFunc(5*time.Millisecond, func() {
				if _, err := w.store.Update(context.Background(), nil, changes); err != nil {
					w.Error(err)
				}
			})
			return 0, classError(row.ClassUnknown, "the reply is lost")
		}}, nil)
		id := w.save(e, "a", time.Hour)
		if met, err := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false); err != nil || met != row.Pending {
			w.Errorf("cancel: met %v, %v", met, err)
		}
		w.standing(row.Cancelled, 0, 0, id)
	})
}

func TestChangesOfARowThatCannotBeReadSaySo(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		id := w.save(e, "a", time.Hour)
		r := w.row(id)
		r.Status = 99
		w.store.Plant(r)
		_, cancel := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false)
		_, reschedule := e.Reschedule(w.Context(), nil, control.Ref{ID: id}, 0, time.Time{}, nil)
		_, body := e.SetBody(w.Context(), control.Ref{ID: id}, nil)
		for call, err := range map[string]error{
			"cancel": cancel, "reschedule": reschedule, "set body": body,
			"retry": e.Retry(w.Context(), control.Ref{ID: id}),
		} {
			if !errors.Is(err, delaytask.ErrBroken) {
				w.Errorf("%s: got %v, want %v", call, err, delaytask.ErrBroken)
			}
		}
	})
}

// A conditional change whose statement is lost is tried again, and its version holds for that try as well.
func TestAConditionalChangeKeepsItsVersionWhenItIsRepeated(t *testing.T) {
	inBubbles(t, map[string]bool{"Alone": false, "AfterAnother": true}, func(w *world, afterAnother bool) {
		other := w.idle(w.store, nil)
		var id int64
		lost := false
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if lost {
				return w.store.Update(ctx, nil, changes)
			}
			lost = true
			if afterAnother {
				_, err := other.SetBody(ctx, control.Ref{ID: id}, []byte("other"))
				w.must(err)
			}
			return 0, classError(row.ClassUnknown, "the connection is gone")
		}}, serving{"a": nothing})
		time.Sleep(time.Second)
		id = w.save(e, "a", 4*time.Second)
		_, err := e.SetBody(w.Context(), control.Ref{ID: id, Version: new(int64)}, []byte("mine"))
		body := "mine"
		if afterAnother {
			body = "other"
		}
		if afterAnother != errors.Is(err, delaytask.ErrVersionChanged) || !afterAnother && err != nil {
			w.Errorf("after another: %v, %v", afterAnother, err)
		}
		time.Sleep(30 * time.Second)
		w.handedOver(id, body)
	})
}

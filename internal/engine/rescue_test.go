package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func TestTaskOfACrashedNodeIsRescued(t *testing.T) {
	inBubble(t, func(w *world) {
		rescued := make(chan *processor.Task, 10)
		dying := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Hour, nil)})
		ids := []int64{
			w.save(dying, "a", 0, processor.WithTTR(3*time.Second), processor.WithMaxAttempts(1)),
			w.save(dying, "a", 0),
		}
		time.Sleep(10 * time.Second)
		var ends []time.Time
		w.crash(dying)
		for _, id := range ids {
			ends = append(ends, w.row(id).Due.Std())
		}
		w.engine(w.store, map[string]processor.Func{"a": nothing}, func(c *Config) {
			c.OnRescued = func(_ context.Context, task *processor.Task) { rescued <- task }
		})
		time.Sleep(30 * time.Second)
		for i, id := range ids {
			r, runs := w.row(id), w.runs.of(id)
			if r.Status != row.Completed || r.CrashCount != 1 || r.Attempt != 1 || len(runs) != 2 {
				w.Fatalf("%d runs, row %+v", len(runs), r)
			}
			if late := runs[1].at.Sub(ends[i]); late < 0 || late > 5*time.Second {
				w.Errorf("rescued %v after the end of the lease", late)
			}
			if r.Execution.Sub(row.At(runs[0].at)).Abs() > 20*time.Millisecond {
				w.Errorf("execution time %v, want the first start, %v", r.Execution, runs[0].at)
			}
		}
		if len(rescued) != 2 {
			w.Errorf("OnRescued was called %d times", len(rescued))
		}
	})
}

// forgetful is a store that leaves one call without an answer, the next one of the kind, while it answers all others.
type forgetful struct {
	Store
	next atomic.Value // the kind, "" for none
}

func (s *forgetful) waits(ctx context.Context, call string) error {
	if !s.next.CompareAndSwap(call, "") {
		return nil
	}
	<-ctx.Done()
	return &row.Error{Class: row.ClassUnknown, Op: call, Err: ctx.Err()}
}

func (s *forgetful) Now(ctx context.Context) (row.Reading, error) {
	if err := s.waits(ctx, "Now"); err != nil {
		return row.Reading{}, err
	}
	return s.Store.Now(ctx)
}

func (s *forgetful) Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error) {
	if err := s.waits(ctx, "Expired"); err != nil {
		return nil, nil, err
	}
	rows, broken, err := s.Store.Expired(ctx, limit)
	if len(rows) > 0 {
		s.next.CompareAndSwap("Now of a rescue", "Now")
	}
	return rows, broken, err
}

func (s *forgetful) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	if err := s.waits(ctx, "Update"); err != nil {
		return 0, err
	}
	return s.Store.Update(ctx, tx, changes)
}

// TestACallWithoutAnAnswerDelaysNoRescue lets the only node that is left lose one answer about the time when a lease
// ends, as it does when a connection is gone and nobody says so.
func TestACallWithoutAnAnswerDelaysNoRescue(t *testing.T) {
	for call, before := range map[string]time.Duration{
		"Expired": 0, "Update": 0, "Now of a rescue": 0, "Now": 7 * time.Second,
	} {
		t.Run(call, func(t *testing.T) {
			inBubble(t, func(w *world) {
				dying := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Hour, nil)})
				id := w.save(dying, "a", 0)
				time.Sleep(10 * time.Second)
				store := &forgetful{Store: w.store}
				w.engine(store, map[string]processor.Func{"a": nothing})
				w.crash(dying)
				end := w.row(id).Due.Std()
				time.Sleep(time.Until(end) - before)
				store.next.Store(call)
				time.Sleep(30 * time.Second)
				runs := w.runs.of(id)
				if len(runs) != 2 || store.next.Load() != "" {
					w.Fatalf("%d runs, and without an answer is still to be: %q", len(runs), store.next.Load())
				}
				if late := runs[1].at.Sub(end); late < 0 || late > 5*time.Second {
					w.Errorf("rescued %v after the end of the lease", late)
				}
			})
		})
	}
}

// sluggish is a store whose rescues take longer than a connection is trusted at first.
type sluggish struct{ Store }

func (s sluggish) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	if changes[0].LeaseOver && !sleep(ctx, 2*lockWait+time.Second) {
		return 0, &row.Error{Class: row.ClassUnknown, Op: "Update", Err: ctx.Err()}
	}
	return s.Store.Update(ctx, tx, changes)
}

func TestASlowDatabaseIsWaitedForAllTheSame(t *testing.T) {
	inBubble(t, func(w *world) {
		lost := row.Row{ID: 1000, Tag: "a", Status: row.Executing, Version: 3, Due: row.At(time.Now()), Attempt: 1, TTR: time.Minute}
		w.store.Plant(lost)
		w.engine(sluggish{w.store}, map[string]processor.Func{"a": nothing})
		time.Sleep(30 * time.Second)
		if r := w.row(1000); r.Status != row.Completed || r.CrashCount != 1 {
			w.Errorf("%v after %d crashes", r.Status, r.CrashCount)
		}
	})
}

func TestPoisonTaskIsQuarantinedAndItsNeighboursAreNot(t *testing.T) {
	inBubble(t, func(w *world) {
		failed := make(chan error, 10)
		crashed := make(chan struct{}, 1)
		stop := make(chan struct{})
		defer close(stop)
		poison := func(context.Context, *processor.Task) error { crashed <- struct{}{}; <-stop; return nil }
		processors := map[string]processor.Func{"poison": poison, "a": untilEnd(4*time.Second, nil)}
		node := func() *Engine {
			return w.engine(w.store, processors, func(c *Config) {
				c.TTR = 2 * time.Second
				c.OnFailed = func(_ context.Context, _ *processor.Task, err error) { failed <- err }
			})
		}
		e := node()
		time.Sleep(time.Second)
		bad := w.save(e, "poison", 0)
		var good []int64
		for crashes := range 5 {
			<-crashed
			good = append(good, w.save(e, "a", 0), w.save(e, "a", 0))
			time.Sleep(100 * time.Millisecond)
			w.crash(e)
			time.Sleep(time.Second)
			e = node()
			if crashes < 4 && w.row(bad).Status == row.Failed {
				w.Fatalf("quarantined after %d crashes", crashes+1)
			}
		}
		time.Sleep(time.Minute)
		if r := w.row(bad); r.Status != row.Failed || r.CrashCount != 5 || r.ErrorStack == "" || len(w.runs.of(bad)) != 5 {
			w.Errorf("after %d runs: %+v", len(w.runs.of(bad)), r)
		}
		for _, id := range good {
			if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 {
				w.Errorf("a neighbour: %+v", r)
			}
		}
		if len(failed) != 1 {
			w.Errorf("OnFailed was called %d times", len(failed))
		}
	})
}

func TestUndecodableRowWithALostLeaseIsFailed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.engine(w.store, map[string]processor.Func{"a": nothing})
		past := row.At(time.Now().Add(-time.Minute))
		w.store.Plant(row.Row{ID: 1000, Tag: "a", Status: row.Executing, Version: 3, Due: past, Headers: []byte("{")})
		w.store.Plant(row.Row{ID: 1001, Tag: "a", Status: row.Executing, Version: 3, Due: past, Attempt: 1, TTR: time.Minute})
		time.Sleep(10 * time.Second)
		if _, broken, _ := w.store.Get(w.Context(), nil, []int64{1000}); len(broken) != 1 || broken[0].Status != row.Failed {
			w.Errorf("broken: %v", broken)
		}
		if r := w.row(1001); r.Status != row.Completed || r.CrashCount != 1 {
			w.Errorf("its neighbour: %+v", r)
		}
	})
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// The end of its lease spends the attempt of a task that was popped, or handed over by a processor.
func TestTaskThatWasHandedOutIsHandedOutAgainWhenItsLeaseEnds(t *testing.T) {
	type way struct{ passed, crash bool }
	inBubbles(t, map[string]way{
		"Popped":                   {false, false},
		"PoppedFromACrashedNode":   {false, true},
		"HandedOver":               {true, false},
		"HandedOverByACrashedNode": {true, true},
	}, func(w *world, c way) {
		tokens := make(chan row.Ref, 10)
		var tags serving
		if c.passed {
			tags = serving{"a": handsOver(0, tokens)}
		}
		e, atMost := w.engine(w.store, tags), 10100*time.Millisecond
		next := func() row.Ref {
			if c.passed {
				return <-tokens
			}
			task := w.take(e, "a")
			return row.Ref{ID: task.ID, Version: task.Version}
		}
		id := w.save(e, "a", 0, delaytask.WithTTR(10*time.Second), delaytask.WithMaxAttempts(2))
		first := next()
		began := time.Now()
		if c.crash {
			time.Sleep(time.Second)
			w.crash(e)
			e, atMost = w.engine(w.store, tags), 14*time.Second
		}
		second := next()
		if held := time.Since(began); held < 9900*time.Millisecond || held > atMost {
			w.Errorf("handed out again after %v, want its TTR of 10s", held)
		}
		w.standing(row.Executing, 2, 0, id)
		w.started(id, 0) // with the first attempt
		if err := e.Finish(w.Context(), id, first.Version); !errors.Is(err, delaytask.ErrLeaseLost) {
			w.Errorf("finished with the old token: %v", err)
		}
		if c.crash {
			w.must(e.Finish(w.Context(), id, second.Version))
			w.finished([]row.Ref{second})
			w.started(id, 0)
			return
		}
		w.measured(e, "a", "total", 0, 50*time.Millisecond)
		var lost []row.Attempt
		if err := json.Unmarshal(w.row(id).Errors, &lost); err != nil || len(lost) != 1 || lost[0].Started.IsZero() {
			w.Errorf("the attempt that was lost: %+v, %v", lost, err)
		}
		time.Sleep(20 * time.Second)
		w.standing(row.Failed, 2, 0, id)
		if v := w.row(id).Version; v != second.Version+1 {
			w.Errorf("its attempts used up it is at version %d, want %d", v, second.Version+1)
		}
		w.started(id, 0)
	})
}

// alarmOnly shows no lease that is over to the rescue.
func alarmOnly(store store.Store) store.Store {
	return at(store, "Expired", func(context.Context, func() error) error { return nil })
}

// clockAway is the store, whose clock cannot be read while away is true.
func (w *world) clockAway() (store store.Store, away *atomic.Bool) {
	away = new(atomic.Bool)
	return at(w.store, "Now", func(_ context.Context, do func() error) error {
		if away.Load() {
			return classError(row.ClassNotApplied, "the clock is away")
		}
		return do()
	}), away
}

func TestLeaseOfAPoppedTaskEndsWhenTheTroubleIsOver(t *testing.T) {
	inBubbles(
		t,
		map[string]bool{"TheClockHasNoAnchor": true, "TheDatabaseIsReadOnly": false},
		func(w *world, clockless bool) {
			store, clockAway := w.clockAway()
			var looks atomic.Int64
			var readOnly atomic.Bool
			store = at(store, "States", func(_ context.Context, do func() error) error {
				if looks.Add(1) > 1000 {
					time.Sleep(time.Second) // or a node that looks without a pause would stop the time of the bubble
				}
				return do()
			})
			e := w.engine(alarmOnly(at(store, "Update", func(_ context.Context, do func() error) error {
				if readOnly.Load() {
					return classError(row.ClassNotApplied, "read-only")
				}
				return do()
			})), nil)
			id := w.save(e, "a", 0, delaytask.WithTTR(10*time.Second))
			first := w.take(e, "a")
			time.Sleep(5 * time.Second)
			if clockless {
				clockAway.Store(true)
				e.Bounds.Drop()
			} else {
				readOnly.Store(true)
			}
			looks.Store(0)
			time.Sleep(20 * time.Second)
			if r := w.row(id); r.Status != row.Executing || r.Version != first.Version {
				w.Errorf("its lease was ended: %+v", r)
			}
			if n := looks.Load(); n > 20 {
				w.Errorf("it was looked at %d times in 20 s", n)
			}
			clockAway.Store(false)
			readOnly.Store(false)
			again, err := e.Pop(
				w.Context(),
				lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true, Wait: 2 * time.Second},
			)
			if err != nil || len(again) != 1 || again[0].Attempt != 2 {
				w.Errorf("when the trouble was over, popped %v, %v: %+v", again, err, w.row(id))
			}
		},
	)
}

func TestLeasesThatEndTogetherShareStatements(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 2000
		store, statements := w.slowUpdate(0)
		e := w.engine(alarmOnly(store), nil)
		ids := w.saveMany(e, "a", tasks, delaytask.WithTTR(10*time.Second))
		w.takeAll(e, "a", tasks)
		before := len(statements())
		time.Sleep(12 * time.Second)
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Pending || r.Attempt != 1 || r.CrashCount != 0 {
				w.Fatalf("after its lease: %+v", r)
			}
		}
		if n := len(statements()) - before; n > tasks/20 {
			w.Errorf("%d statements end %d leases", n, tasks)
		}
	})
}

// The node's own rescue may be faster than the end of the hold: here it is half a second.
func TestPoppedTaskWhoseLeaseARescueEndsIsHandedOutAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		store, away := w.clockAway()
		e := w.engine(store, nil)
		id := w.save(e, "a", 0, delaytask.WithTTR(10*time.Second))
		w.take(e, "a")
		time.Sleep(8500 * time.Millisecond) // what follows is too short for an outage, after which rescues wait
		away.Store(true)
		e.Bounds.Drop()
		time.Sleep(time.Until(w.row(id).Due.Std()) + 1500*time.Millisecond)
		away.Store(false)
		<-e.Bounds.Anchored()
		w.must(e.find.Rescue(w.Context()))
		began := time.Now()
		second := w.take(e, "a")
		if took := time.Since(began); took > 50*time.Millisecond || second.Attempt != 2 {
			w.Errorf("handed out again after %v: %+v", took, second)
		}
	})
}

func TestPopGivesItsTasksTheLeaseThatItAsksFor(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", 0, delaytask.WithTTR(5*time.Second))
		got, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"a"}, Max: 1, TTR: time.Minute})
		if err != nil || len(got) != 1 {
			w.Fatalf("popped %v, %v", got, err)
		}
		time.Sleep(50 * time.Second)
		for range 4 { // a touch prolongs it
			w.must(e.Touch(w.Context(), id, got[0].Version, 5*time.Second))
			time.Sleep(4 * time.Second)
		}
		w.must(e.Finish(w.Context(), id, got[0].Version))
	})
}

package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

func TestTasksOnProbationThatAreRetriedExonerateNone(t *testing.T) {
	inBubble(t, func(w *world) {
		w.plantOnProbation(20)
		running := 0
		w.engine(w.store, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			if running++; running > 1 {
				w.Errorf("task %d runs beside another on probation", task.ID)
			}
			lifecycle.Sleep(ctx, 100*time.Millisecond)
			running--
			return errors.New("boom")
		}})
		time.Sleep(10 * time.Second)
	})
}

// plantCrashed plants an overdue task that has lost this many executors.
func (w *world) plantCrashed(id int64, tag string, crashes int, ttr time.Duration) {
	due := row.At(time.Now().Add(-time.Minute)) + row.Time(id)
	w.store.Plant(row.Row{ID: id, Tag: tag, Body: []byte("{}"), Due: due, Expected: due, CrashCount: crashes, TTR: ttr})
}

// plantOnProbation plants n tasks with ids from 1 on that have lost two executors.
func (w *world) plantOnProbation(n int64) {
	for id := range n {
		w.plantCrashed(1+id, "a", runqueue.ProbationAt, 2*time.Second)
	}
}

// An outage that has come twice leaves many tasks under suspicion. One by one they would take 10 minutes.
func TestManyTasksOnProbationAreSoonThrough(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 600
		w.plantOnProbation(tasks)
		w.engine(w.store, serving{"a": untilEnd(time.Second, nil)})
		time.Sleep(30 * time.Second)
		if done := w.done("a"); done < tasks {
			w.Errorf("%d of %d tasks are done", done, tasks)
		}
	})
}

// quarantine lets one process after the other run the tasks with work, but the poison, which kills three of them on the
// store; then it must be quarantined.
func (w *world) quarantine(poison int64, on store.Store, work processor.Func) {
	w.Helper()
	kill, stop := make(chan struct{}, 10), make(chan struct{})
	defer close(stop)
	processors := serving{"a": func(ctx context.Context, task *delaytask.Task) error {
		if task.ID == poison {
			kill <- struct{}{}
			<-stop
		}
		return work(ctx, task)
	}}
	for range 3 {
		e := w.engine(on, processors)
		<-kill
		w.crash(e)
	}
	w.engine(w.store, processors)
	time.Sleep(time.Minute)
	if r := w.row(poison); r.Status != row.Failed || r.CrashCount != 5 {
		w.Errorf("the poison: %v, %d crashes", r.Status, r.CrashCount)
	}
}

// TestTaskOnProbationIsDoneBeforeThePoisonRuns has two tasks that have lost two executors. One goes on to kill its
// process. The result of the other must be stored by then.
func TestTaskOnProbationIsDoneBeforeThePoisonRuns(t *testing.T) {
	inBubble(t, func(w *world) {
		const innocent, poison = 1, 2
		w.plantOnProbation(2)
		w.quarantine(poison, slow(w.store, "Update", 100*time.Millisecond), nothing)
		w.standing(row.Completed, 1, runqueue.ProbationAt, innocent)
	})
}

// A task that kills its process meets tasks on probation with many slots. It costs them one more loss, and no other.
func TestPoisonAmongManyOnProbationIsQuarantinedAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks, poison = 300, 100
		w.plantOnProbation(tasks)
		w.quarantine(poison, w.store, untilEnd(100*time.Millisecond, nil))
		hit := 0
		for id := int64(1); id <= tasks; id++ {
			if r := w.row(id); id != poison && (r.Status != row.Completed || r.CrashCount > runqueue.SoloAt) {
				w.Errorf("task %d: %v, %d crashes", id, r.Status, r.CrashCount)
			} else if id != poison && r.CrashCount == runqueue.SoloAt {
				hit++
			}
		}
		if hit == 0 {
			w.Error("the poison has met none")
		}
	})
}

// A crash counts no more against a task that is completed in a transaction, or whose hand-over waits for a lock.
func TestTaskOnProbationThatNoCrashCanHitHoldsUpNoOther(t *testing.T) {
	var unlock func()
	inBubbles(t, map[string]func(*world) processor.Func{
		"CompletedInATransaction": func(w *world) processor.Func {
			unlock = func() {}
			return func(ctx context.Context, _ *delaytask.Task) error {
				tx := &memTx{}
				w.must(errors.Join(processor.CompleteTx(ctx, tx), tx.end(true)))
				lifecycle.Sleep(ctx, 30*time.Second)
				return nil
			}
		},
		"HandOverThatWaits": func(w *world) processor.Func {
			return func(context.Context, *delaytask.Task) error {
				unlock = w.store.Lock(1)
				return processor.HandOver(time.Minute)
			}
		},
	}, func(w *world, busy func(*world) processor.Func) {
		w.plantCrashed(1, "busy", runqueue.SoloAt, time.Minute)
		w.engine(txStore{w.store}, serving{"a": nothing, "busy": busy(w)})
		time.Sleep(6 * time.Second)
		w.plantCrashed(2, "a", runqueue.SoloAt, time.Minute)
		time.Sleep(7 * time.Second)
		w.standing(row.Completed, 1, runqueue.SoloAt, 2)
		unlock()
		time.Sleep(30 * time.Second)
		if r := w.row(1); r.Status != row.Completed && !r.Executor.Popped() {
			w.Errorf("row: %+v", r)
		}
	})
}

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// slowUpdates is a store whose transitions take a while to get there.
type slowUpdates struct{ Store }

func (s slowUpdates) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	if !sleep(ctx, 100*time.Millisecond) {
		return 0, &row.Error{Class: row.ClassNotApplied, Op: "update", Err: ctx.Err()}
	}
	return s.Store.Update(ctx, tx, changes)
}

// TestSuspectIsDoneBeforeThePoisonRuns has two tasks that have lost two executors, of which one goes on to kill its process.
// The result of the other must be stored by then.
func TestSuspectIsDoneBeforeThePoisonRuns(t *testing.T) {
	inBubble(t, func(w *world) {
		kill, stop := make(chan struct{}, 10), make(chan struct{})
		defer close(stop)
		const innocent, poison = 1000, 1001
		processors := map[string]processor.Func{"a": func(_ context.Context, task *processor.Task) error {
			if task.ID == poison {
				kill <- struct{}{}
				<-stop
			}
			return nil
		}}
		for _, id := range []int64{innocent, poison} {
			due := row.At(time.Now().Add(-time.Minute)).Add(time.Duration(id) * time.Millisecond)
			w.store.Plant(row.Row{ID: id, Tag: "a", Due: due, Expected: due, CrashCount: 2, TTR: 2 * time.Second})
		}
		for range 3 {
			e := w.engine(slowUpdates{w.store}, processors)
			<-kill
			w.crash(e)
		}
		w.engine(w.store, processors)
		time.Sleep(time.Minute)
		if r := w.row(poison); r.Status != row.Failed || r.CrashCount != 5 {
			w.Errorf("the poison: %v, %d crashes", r.Status, r.CrashCount)
		}
		if r := w.row(innocent); r.Status != row.Completed || r.CrashCount != 2 {
			w.Errorf("its neighbour: %v, %d crashes", r.Status, r.CrashCount)
		}
	})
}

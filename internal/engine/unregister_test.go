package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func TestTagThatIsUnregisteredRunsNoMoreUntilItIsRegisteredAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		working, goOn := make(chan struct{}), make(chan struct{})
		e := w.engine(w.store, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			close(working)
			<-goOn
			return nil
		}, "b": nothing})
		running := w.save(e, "a", 0)
		<-working
		armed, soon, neighbour := w.save(e, "a", 10*time.Second), w.save(e, "a", 5*time.Millisecond), w.save(e, "b", 10*time.Second)
		if !e.cfg.Registry.Unregister("a") {
			w.Fatal("it had no processor")
		}
		e.Unregistered()
		if e.tags.open("a") || !e.tags.open("b") {
			w.Errorf("open: %v", e.tags.list())
		}
		time.Sleep(20 * time.Second)
		close(goOn)
		time.Sleep(time.Second)
		w.completed(running, time.Second)
		w.completed(neighbour, 2*time.Millisecond)
		for _, id := range []int64{armed, soon} {
			if r := w.row(id); r.Status != row.Pending || r.Attempt != 0 {
				w.Errorf("row: %+v", r)
			}
		}
		nodes, _, err := w.store.Nodes(w.Context())
		if err != nil || len(nodes) != 1 || slices.Contains(nodes[0].Tags, "a") {
			w.Errorf("announced: %+v, %v", nodes, err)
		}
		if err := e.cfg.Registry.Register("a", w.runs.note(nothing)); err != nil {
			w.Fatal(err)
		}
		e.Registered()
		again := w.save(e, "a", 3*time.Second)
		time.Sleep(10 * time.Second)
		for _, id := range []int64{armed, soon} {
			if r := w.row(id); r.Status != row.Completed || r.CrashCount != 0 {
				w.Errorf("row: %+v", r)
			}
		}
		w.completed(again, 2*time.Millisecond)
	})
}

// What was claimed ahead of its time when the tag was unregistered goes back, and another node runs it.
func TestTaskClaimedAheadOfATagThatIsUnregisteredGoesToAnotherNode(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(3 * time.Second)
		var ids []int64
		for range 200 {
			ids = append(ids, w.save(e, "a", 3*time.Second))
		}
		time.Sleep(2999 * time.Millisecond)
		e.cfg.Registry.Unregister("a")
		e.Unregistered()
		w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(20 * time.Second)
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 || r.CrashCount != 0 {
				w.Fatalf("row: %+v", r)
			}
		}
	})
}

package engine

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// That somebody's transaction holds a row tells nothing about the database.
func TestLockedRowFailsNeitherThePopsOfOtherTagsNorTheHealth(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		id := w.save(e, "a", 3*time.Second)
		defer w.store.Lock(id)()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if err := e.Ready(w.Context()); err != nil {
				w.Fatalf("not ready: %v", err)
			}
			if _, err := e.Pop(w.Context(), PopRequest{Tags: []string{"b"}, Max: 1, Waits: true}); err != nil {
				w.Fatalf("popping of another tag: %v", err)
			}
		}
	})
}

package control

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestTurnsComeOneAfterTheOtherAndAreForgotten(t *testing.T) {
	turns := turns{of: map[int64]*turn{}}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	busy := 0
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = short
			}
			if turns.take(ctx, 7) == nil {
				busy++ // the race detector sees two of them at once
				turns.pass(7)
			}
		})
	}
	all.Wait()
	if busy < 50 || len(turns.of) > 0 {
		t.Errorf("%d had their turn, %d turns are left", busy, len(turns.of))
	}
}

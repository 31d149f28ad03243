package lifecycle

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheEndWaitsForGoroutinesOfGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), Config{Log: slog.New(slog.DiscardHandler)})
		var ran atomic.Int64
		l.Go(func() {
			<-l.Life.Done()
			time.Sleep(time.Second)
			l.Go(func() {
				time.Sleep(time.Second)
				ran.Add(1)
			})
		})
		l.End()
		if ran.Load() != 1 {
			t.Error("the end has not waited")
		}
	})
}

// A processor may return at the very end of a scheduler, or after it.
func TestNoGoroutineBeginsAfterTheEnd(t *testing.T) {
	for range 100 {
		l := New(t.Context(), Config{Log: slog.New(slog.DiscardHandler)})
		var running atomic.Int64
		late := make(chan struct{})
		go func() {
			defer close(late)
			for range 100 {
				l.Go(func() {
					running.Add(1)
					defer running.Add(-1)
				})
			}
		}()
		l.End()
		if n := running.Load(); n != 0 {
			t.Fatalf("%d goroutines run after the end", n)
		}
		<-late
		l.Go(func() { t.Error("a goroutine begins after the end") })
		l.End()
	}
}

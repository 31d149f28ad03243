package lifecycle

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowLog takes two seconds for each line.
type slowLog struct {
	slog.Handler
	writing *atomic.Int64
}

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }

func (s slowLog) Handle(ctx context.Context, r slog.Record) error {
	s.writing.Add(1)
	defer s.writing.Add(-1)
	time.Sleep(2 * time.Second)
	return s.Handler.Handle(ctx, r)
}

func TestNoLineThatWasHeldBackIsWrittenAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writing atomic.Int64
		limiter := newLogLimiter(slog.New(slowLog{slog.DiscardHandler, &writing}))
		log := slog.New(limiter)
		go log.Info("a")
		synctest.Wait()
		log.Info("a") // held back for a second
		time.Sleep(2500 * time.Millisecond)
		limiter.close()
		if n := writing.Load(); n != 0 {
			t.Errorf("%d lines are being written after the end", n)
		}
	})
}

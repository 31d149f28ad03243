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

// counted counts lines.
type counted struct {
	slog.Handler
	lines *atomic.Int64
}

func (counted) Enabled(context.Context, slog.Level) bool { return true }

func (c counted) Handle(context.Context, slog.Record) error {
	c.lines.Add(1)
	return nil
}

func TestAnOutageIsLoggedEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines atomic.Int64
		log := slog.New(newLogLimiter(slog.New(counted{slog.DiscardHandler, &lines})))
		refuse := func(d time.Duration) int64 {
			lines.Store(0)
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				log.Warn("refused", "op", "claiming")
			}
			return lines.Load()
		}
		if n := refuse(2 * time.Minute); n != 6 { // after 0, 5, 15, 35, 65 and 95 s
			t.Errorf("two minutes of an outage are %d lines, want 6", n)
		}
		time.Sleep(time.Minute)
		if n := refuse(6 * time.Second); n != 2 {
			t.Errorf("the next outage begins with %d lines in 6 s, want 2", n)
		}
	})
}

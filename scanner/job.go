package scanner

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/robfig/cron/v3"
)

// job is a pass with what keeps its runs apart.
type job struct {
	pass    Pass
	entry   cron.EntryID
	busy    chan struct{} // holds one token while the pass runs
	waiting atomic.Bool   // a kick waits for its turn
	turns   atomic.Int64  // how often cron came by, whether or not the pass could run
}

func newJob(p Pass) *job { return &job{pass: p, busy: make(chan struct{}, 1)} }

// tick runs the pass unless it is still running: its next turn comes soon.
func (j *job) tick(ctx context.Context, log *slog.Logger) {
	j.turns.Add(1)
	select {
	case j.busy <- struct{}{}:
		j.run(ctx, log)
	default:
	}
}

// kick waits for a run in progress, because that may have looked before whatever the kick is about.
func (j *job) kick(ctx context.Context, log *slog.Logger) {
	if !j.waiting.CompareAndSwap(false, true) {
		return
	}
	select {
	case j.busy <- struct{}{}:
		j.waiting.Store(false)
		j.run(ctx, log)
	case <-ctx.Done():
		j.waiting.Store(false)
	}
}

// run does the pass once and gives the token back. A pass that panics must not take the process, or its own later
// turns, with it.
func (j *job) run(ctx context.Context, log *slog.Logger) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("a pass panicked", "pass", j.pass.Name, "panic", v, "stack", string(debug.Stack()))
		}
		<-j.busy
	}()
	if err := j.pass.Run(ctx); err != nil && ctx.Err() == nil {
		log.Warn("a pass failed; it runs again at its next turn", "pass", j.pass.Name, "err", err)
	}
}

package find

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
)

// fileWatch finds what other processes have saved into the file of an embedded database. The version of the file says
// at next to no cost whether it has changed. A process that is alone with the file does not look.
type fileWatch struct {
	*deps
	quick *quickPoll
	busy  time.Time // when it last found something, or something ran
}

const (
	fileBusy    = 5 * time.Millisecond
	fileIdle    = 50 * time.Millisecond
	fileBusyFor = 3 * time.Second
)

func (f *fileWatch) loop(ctx context.Context) {
	if f.cfg.FileVersion == nil {
		return
	}
	var last int64
	for lifecycle.Sleep(ctx, f.pause()) {
		if f.arm.Census.Alone() {
			continue
		}
		version, err := f.version(ctx)
		if err == nil && version == last {
			continue
		}
		found := 0
		if err == nil {
			// What falls due later the next look-ahead finds in time.
			found, err = f.quick.read(ctx, f.arm.Tags.List(), f.cfg.LookAhead*5/4)
		}
		if err != nil && ctx.Err() == nil {
			f.Failed("looking for changes of the file", err)
			lifecycle.Sleep(ctx, lifecycle.Backoff(6))
			continue
		}
		last = version
		if found > 0 || f.pool.Attempts.Len() > 0 {
			f.busy = time.Now()
		}
	}
}

func (f *fileWatch) version(ctx context.Context) (int64, error) {
	ctx, cancel := f.CallIn(ctx)
	defer cancel()
	return f.cfg.FileVersion(ctx)
}

func (f *fileWatch) pause() time.Duration {
	switch {
	case f.arm.Census.Alone():
		return f.cfg.LookAhead
	case time.Since(f.busy) > fileBusyFor:
		return fileIdle
	default:
		return max(fileBusy, quickShare*f.quick.cost())
	}
}

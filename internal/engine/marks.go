package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// markNode marks what this node has done.
func (e *Engine) markNode(kind report.MarkKind) {
	if now := e.events.Now(); !now.IsZero() {
		e.events.Rollup.Mark(now, "", e.arm.Census.Process.Token, row.Mark{Kind: kind, Name: e.arm.Census.Process.Name})
	}
}

// tellOfStart writes the mark of the start, once this has done what is urgent: a node that soon crashes again should
// show.
func (e *Engine) tellOfStart(ctx context.Context) {
	if lifecycle.Sleep(ctx, lifecycle.Jitter(time.Second, 0.5)) {
		e.events.Rollup.Write(ctx)
	}
}

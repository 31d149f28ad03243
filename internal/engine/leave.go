package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
)

// leaveTick is how often a leaving node looks whether it has anything left to claim.
const leaveTick = 20 * time.Millisecond

// handSharesOver goes on to claim what falls due here until the other nodes have taken over: within a look-ahead they
// see that this one leaves, and arm what is theirs from then on. So nothing of this node's share is late. It ends when
// nothing of that is left, after two look-aheads, or with half of the grace: the rest is for what runs. Where no other
// node serves a tag there is nobody to wait for.
func (e *Engine) handSharesOver(grace context.Context) {
	shares := e.arm.shares.Load()
	if shares == nil || !shares.view.Others(e.tags.list()) {
		return
	}
	ctx, cancel := context.WithTimeout(grace, min(e.cfg.shortTerm(), e.cfg.StopGrace/2))
	defer cancel()
	until := e.now().Add(e.cfg.shortTerm())
	// The shares stay as they were, with this node in them, and a last look goes to the end of what the others may not
	// know of.
	if err := e.lookahead.readWindow(ctx, e.tags.list()); err != nil && ctx.Err() == nil {
		e.Failed("looking ahead", err)
	}
	for e.runqueue.Claimable(until) && lifecycle.Sleep(ctx, leaveTick) {
	}
}

package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// peek finds rows that have just become overdue and are in no hand of this process, whosever they were to arm: their node may
// have died, or they were saved too late for any look-ahead. What is older than a second belongs to the scan.
type peek struct {
	*core
	tags *tags
	busy time.Time // when it last found something, or something ran
	runs *runs
}

const peekRows = 200

func (p *peek) loop(ctx context.Context) {
	for {
		every := peekIdle
		if p.runs.len() > 0 {
			p.busy = time.Now()
		}
		if time.Since(p.busy) < time.Second {
			every = peekBusy
		}
		if !sleep(ctx, jitter(every, 0.1)) {
			return
		}
		if err := p.runOnce(ctx); err != nil && ctx.Err() == nil {
			p.failed("peeking", err)
			sleep(ctx, pause(6))
		}
	}
}

func (p *peek) runOnce(ctx context.Context) error {
	tags := p.hands.withTaker(p.tags.list())
	now, anchored := p.clock.AtLeast()
	if len(tags) == 0 || !anchored {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.CallTimeout)
	defer cancel()
	page, err := p.store.Due(ctx, row.Window{Tags: tags, From: now.Add(-overdue), To: now.Add(-peekFrom), Limit: peekRows})
	if err != nil || len(page) == 0 {
		return err
	}
	p.busy = time.Now()
	// Several nodes find the same page; in another order each wins some of it.
	rand.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
	p.hands.due(page, false, now)
	return nil
}

package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	backlogEvery = 15 * time.Second
	// backlogMost bounds how many tasks of a tag are counted. A longer backlog shows in the age of its oldest task.
	backlogMost = 1000
)

// measureBacklog says every 15 s what is due and waits, of the tags that are served here, paused ones included. No
// scrape reads the table.
func (e *Engine) measureBacklog(ctx context.Context) {
	if e.Metrics == metrics.None {
		return
	}
	for {
		all, err := e.backlog(ctx)
		if err != nil && ctx.Err() == nil {
			e.Failed("measuring the backlog", err)
		}
		e.Metrics.SetBacklog(all)
		if !lifecycle.Sleep(ctx, lifecycle.Jitter(backlogEvery, 0.1)) {
			e.Metrics.SetBacklog(nil)
			return
		}
	}
}

// backlog reads the oldest due tasks of each tag, by the index that the overdue poll uses.
func (e *Engine) backlog(ctx context.Context) ([]metrics.Backlog, error) {
	var all []metrics.Backlog
	for _, tag := range e.tags.served() {
		now, anchored := e.clock.AtLeast()
		if !anchored {
			return nil, nil
		}
		call, cancel := e.CallIn(ctx)
		due, err := e.store.Due(call, row.Window{Tags: []string{tag}, To: now, Limit: backlogMost})
		cancel()
		if err != nil {
			return nil, err
		}
		b := metrics.Backlog{Tag: tag, Due: len(due)}
		for _, d := range due {
			if !d.Due.IsZero() { // a plain INSERT may leave it out
				b.Oldest = now.Sub(d.Due)
				break
			}
		}
		all = append(all, b)
	}
	return all, nil
}

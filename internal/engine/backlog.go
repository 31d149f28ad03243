package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	backlogFirst = time.Second // programs have registered their processors by then
	// backlogEvery leaves at least 15 s between two readings, whatever its jitter.
	backlogEvery = 17 * time.Second
	// backlogMost bounds how many tasks of a tag are counted. A longer backlog shows in the age of its oldest task.
	backlogMost = 1000
	// backlogTags bounds how many tags are counted, those whose tasks have waited longest.
	backlogTags = 100
)

// measureTable says what waits in the table. It is the only reader of the process, so no scrape reads. Processes that
// only save read as well: they may be the last ones alive.
func (e *Engine) measureTable(ctx context.Context) {
	if e.events.Metrics == metrics.None {
		return
	}
	for wait := backlogFirst; lifecycle.Sleep(ctx, wait); wait = lifecycle.Jitter(backlogEvery, 0.1) {
		backlog, err := e.backlog(ctx)
		e.events.Metrics.SetBacklog(backlog)
		var lags map[string]time.Duration
		if err == nil && e.running() {
			lags, err = e.purgeLags(ctx)
		}
		e.events.Metrics.SetPurgeLags(lags)
		if err != nil && ctx.Err() == nil {
			e.events.Failed("measuring the backlog", err)
		}
	}
	e.events.Metrics.SetBacklog(nil)
	e.events.Metrics.SetPurgeLags(nil)
}

// backlog reads what is due and waits: of each tag that runs here, and of each tag with due tasks that no live process
// serves.
func (e *Engine) backlog(ctx context.Context) ([]metrics.Backlog, error) {
	call, cancel := e.events.CallIn(ctx)
	defer cancel()
	oldest, err := e.events.Store.Oldest(call, row.Pending)
	if err != nil {
		return nil, err
	}
	count, err := e.arm.Census.Read(call)
	if err != nil {
		return nil, err
	}
	now := count.Time
	due := make(map[string]time.Duration, len(oldest))
	for _, o := range oldest {
		if !o.Oldest.IsZero() && o.Oldest < now {
			due[o.Tag] = now.Sub(o.Oldest)
		}
	}
	var idle, waiting []metrics.Backlog
	if e.running() {
		for _, tag := range e.arm.Tags.Served() {
			_, nodes := count.View.Share(tag, 0)
			b := metrics.Backlog{Tag: tag, Oldest: due[tag], Nodes: max(nodes, 1)}
			if b.Oldest == 0 {
				idle = append(idle, b)
				continue
			}
			waiting = append(waiting, b)
			delete(due, tag)
		}
	}
	for tag, oldest := range due {
		if !count.View.Served(tag) {
			waiting = append(waiting, metrics.Backlog{Tag: tag, Oldest: oldest})
		}
	}
	slices.SortFunc(waiting, func(a, b metrics.Backlog) int { return cmp.Compare(b.Oldest, a.Oldest) })
	waiting = waiting[:min(len(waiting), backlogTags)]
	for i := range waiting {
		if err := e.count(ctx, &waiting[i], now); err != nil {
			return nil, err
		}
	}
	return slices.Concat(idle, waiting), nil
}

// count reads the due tasks of a tag, by the index of the overdue poll. Some may have been claimed meanwhile.
func (e *Engine) count(ctx context.Context, b *metrics.Backlog, now row.Time) error {
	call, cancel := e.events.CallIn(ctx)
	defer cancel()
	due, err := e.events.Store.Due(call, row.Window{
		Tags: []string{b.Tag}, From: row.MinTime, To: now, Limit: backlogMost,
	})
	if b.Due, b.Oldest = len(due), 0; len(due) > 0 {
		b.Oldest = now.Sub(due[0].Due)
	}
	return err
}

// purgeLags returns by status for how long the oldest finished task is past its retention. Statuses that are kept for
// ever are left out.
func (e *Engine) purgeLags(ctx context.Context) (map[string]time.Duration, error) {
	lags := map[string]time.Duration{}
	for status, keep := range e.cfg.Retention.ByStatus() {
		if keep <= 0 {
			continue
		}
		call, cancel := e.events.CallIn(ctx)
		oldest, err := e.events.Store.Oldest(call, status)
		cancel()
		now, anchored := e.events.Bounds.AtLeast()
		if err != nil || !anchored {
			return nil, err
		}
		lag := time.Duration(0)
		for _, o := range oldest {
			if !o.Oldest.IsZero() {
				lag = max(lag, now.Sub(o.Oldest)-keep)
			}
		}
		lags[status.String()] = lag
	}
	return lags, nil
}

package engine

import (
	"cmp"
	"context"
	"maps"
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
	// lagsEvery is how many readings share one of what waits for a purge, which hardly changes within a minute.
	lagsEvery = 4
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
	told := map[string]time.Time{}
	var lags map[string]time.Duration
	wait := backlogFirst
	for n := 0; lifecycle.Sleep(ctx, wait); n++ {
		wait = lifecycle.Jitter(backlogEvery, 0.1)
		backlog, err := e.backlog(ctx)
		e.events.Metrics.SetBacklog(backlog)
		e.tellOfUnserved(backlog, told)
		switch {
		case err != nil || !e.running():
			lags = nil
		case lags == nil || n%lagsEvery == 0:
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

const (
	unservedFor   = 5 * time.Second // as the finding of an overview has it
	unservedEvery = time.Minute
)

// tellOfUnserved warns of tags with overdue tasks that no live process serves, of each once a minute. The first reading
// that finds one says nothing: the process that serves it may be about to start. told says when each was told of, by
// the monotonic clock. A process that only saves does not know which tags are paused, and says nothing.
func (e *Engine) tellOfUnserved(backlog []metrics.Backlog, told map[string]time.Time) {
	found := map[string]bool{}
	for _, b := range backlog {
		if b.Nodes > 0 || b.Oldest < unservedFor || !e.running() || e.arm.Tags.Paused(b.Tag) {
			continue
		}
		found[b.Tag] = true
		last, again := told[b.Tag]
		if !again {
			told[b.Tag] = time.Now().Add(-unservedEvery)
		} else if time.Since(last) >= unservedEvery {
			told[b.Tag] = time.Now()
			e.events.Log.Warn("tasks are overdue, and no live process serves their tag; start one that registers it",
				"tag", b.Tag, "due", b.Due, "oldest", b.Oldest)
		}
	}
	maps.DeleteFunc(told, func(tag string, _ time.Time) bool { return !found[tag] })
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

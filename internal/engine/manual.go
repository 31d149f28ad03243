package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/listing"
	"github.com/delaytask/delaytask/internal/planner"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// Manual is an engine that runs a task only when it is told to, in the calling goroutine, and whose time is told by the
// caller: for tests of code that uses delaytask. Processors are called, and results decided and written, by the code of
// any engine.
type Manual struct{ *Engine }

// NewManual returns an engine on a store that tells the time now. None of the loops of an engine runs.
func NewManual(ctx context.Context, cfg Config, now func() time.Time) (*Manual, error) {
	life := newLife(ctx, &cfg)
	life.Log = cfg.Logger // a test sees every line, at once
	c := newDeps(&dbClock{Lifecycle: life, clock: clock.New(clock.Drift(0), clock.Source(now))}, cfg)
	c.atOnce = true
	// A reading lacks up to a microsecond, which the upper bound allows for. This one is exact, so that is taken back.
	at := now()
	c.clock.Add(row.Reading{Time: row.At(at), Server: "manual"}, at.Add(time.Microsecond), at)

	process := cluster.NewProcess()
	member, err := cluster.Join(ctx, cfg.Store, cluster.MemberConfig{Process: process, Version: Version})
	if err != nil {
		life.End()
		return nil, err
	}
	m := &Manual{Engine: &Engine{deps: c, attempts: newAttempts(), member: member, started: true}}
	m.wire(process)
	m.passes.rescue.Held = func() bool { return false } // there is one clock, and no executor but this one
	m.passes.rescue.Rescued = func(rows []row.Row) { m.passes.reportRescued(rows) }
	m.tags.run(true)
	return m, nil
}

// Tick does what the look-ahead, the rescue of leases and the heartbeat do in the course of time; it is called when the
// time has moved.
func (m *Manual) Tick(ctx context.Context) error {
	if !m.running() {
		return processor.ErrClosed
	}
	if err := m.tags.read(ctx); err != nil {
		return err
	}
	m.member.SetTags(m.tags.served())
	if err := m.member.Beat(ctx); err != nil {
		return err
	}
	if err := m.passes.rescue.Pass(ctx); err != nil {
		return err
	}
	if err := m.planner.Apply(ctx, m.takeDeclared()); err != nil {
		return err
	}
	return m.planner.PlanNow(ctx)
}

// takeDeclared returns the set that the program declares, once.
func (m *Manual) takeDeclared() (set planner.Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, m.declared = m.declared, set
	return set
}

// NextLook returns when, after this moment, the first schedule needs attention or the first lease is over, or zero.
// Tick has to be called then. What needed it before, and about which nothing could be done, is left alone.
func (m *Manual) NextLook(ctx context.Context) (row.Time, error) {
	look, err := m.nextLease(ctx)
	if err != nil {
		return 0, err
	}
	found, _, err := m.store.LookAt(ctx, row.MaxTime, m.now()+1, 0, 1)
	if err != nil || len(found) == 0 {
		return look, err
	}
	if look.IsZero() {
		return found[0].Look, nil
	}
	return min(look, found[0].Look), nil
}

// nextLease returns when the first lease will be over of a task that was handed over, or zero.
func (m *Manual) nextLease(ctx context.Context) (over row.Time, err error) {
	tags, err := listing.Tags(ctx, m.store, row.Executing)
	if err != nil || len(tags) == 0 {
		return 0, err
	}
	spans := make([]row.Span, len(tags))
	for i, tag := range tags {
		spans[i] = row.Span{Status: row.Executing, Tag: tag, From: m.now()}
	}
	first, err := m.store.Places(ctx, spans, 1)
	for _, places := range first {
		for _, at := range places {
			if over.IsZero() || at.Due+1 < over {
				over = at.Due + 1
			}
		}
	}
	return over, err
}

// nextPage is how many rows are compared at once.
const nextPage = 1000

// Next returns the task that would run next if the time went on to until, in the order of an engine that runs one task
// at once.
func (m *Manual) Next(ctx context.Context, until row.Time) (next row.Due, found bool, err error) {
	page, err := m.store.Due(ctx, row.Window{Tags: m.tags.list(), To: until + 1, Limit: nextPage})
	if err != nil || len(page) == 0 {
		return next, false, err
	}
	start := max(page[0].Due, m.now())
	page = slices.DeleteFunc(page, func(d row.Due) bool { return d.Due > start })
	return slices.MinFunc(page, func(a, b row.Due) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	}), true, nil
}

// Run claims a due task, runs its processor, and writes the result; hooks have returned when it does. It returns what
// the processor returned, and whether the task could be claimed.
func (m *Manual) Run(ctx context.Context, d row.Due) (result error, ran bool, err error) {
	m.runqueue.AddDue([]row.Due{d}, false, m.now())
	for _, it := range m.runqueue.Pick(1, 0, false) {
		claim := row.Claim{
			Executor: m.claimer.freshExecutor(""), IP: m.claimer.ip, Rows: []row.Ref{{ID: it.ID, Version: it.Version}},
		}
		claimed, err := m.store.Claim(ctx, claim)
		if err != nil || len(claimed.Rows) == 0 {
			m.runqueue.Release(it, runqueue.Ended)
			return nil, false, err
		}
		a := newAttempt(it, claimed.Rows[0], claimed.Reading.Time, time.Now())
		m.attempts.add(a)
		result, ran = m.runner.execute(a), true
	}
	m.Wait()
	m.hooks.running.Wait()
	return result, ran, nil
}

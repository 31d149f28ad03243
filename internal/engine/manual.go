package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/plan"
)

// Manual is an engine that runs a task only when it is told to, in the calling goroutine, and whose time is told by the
// caller: for tests of code that uses delaytask. Processors are called, and results decided and written, by the code of
// any engine.
type Manual struct{ *Engine }

// NewManual returns an engine on a store that tells the time now. None of the loops of an engine runs.
func NewManual(ctx context.Context, cfg Config, now func() time.Time) (*Manual, error) {
	life := newLife(ctx, &cfg)
	life.Log = cfg.Logger // a test sees every line, at once
	c := table.NewManualClock(life, now)
	process := cluster.NewProcess()
	source := ids.NewSource(ids.RandomNode(), c.Bounds.Guess)
	member, err := cluster.Join(ctx, cfg.Store, cluster.MemberConfig{Process: process, Version: build(), IDs: source})
	if err != nil {
		life.End()
		return nil, err
	}
	m := &Manual{Engine: &Engine{cfg: cfg, member: member, ids: source, started: true}}
	m.wire(table.New(c, cfg.Store), process, true)
	m.arm.Tags.Run(true)
	return m, nil
}

// Tick does what the look-ahead, the rescue of leases and the heartbeat do in the course of time; it is called when the
// time has moved.
func (m *Manual) Tick(ctx context.Context) error {
	if !m.running() {
		return delaytask.ErrClosed
	}
	if err := m.arm.Tags.Read(ctx); err != nil {
		return err
	}
	m.member.SetTags(m.arm.Tags.Served())
	if err := m.member.Beat(ctx); err != nil {
		return err
	}
	if err := m.find.Rescue(ctx); err != nil {
		return err
	}
	if err := m.planner.Apply(ctx, m.takeDeclared()); err != nil {
		return err
	}
	return m.planner.PlanNow(ctx)
}

// takeDeclared returns the set that the program declares, once.
func (m *Manual) takeDeclared() (set plan.Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, m.declared = m.declared, set
	return set
}

// NextLook returns when, after this moment, the first schedule needs attention or the first lease is over, or zero.
// Tick has to be called then. It leaves out what already needed attention, and could not get it.
func (m *Manual) NextLook(ctx context.Context) (row.Time, error) {
	look, err := m.nextLease(ctx)
	if err != nil {
		return 0, err
	}
	found, _, err := m.events.Store.LookAt(ctx, row.MaxTime, m.events.Now()+1, 0, 1)
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
	tags, err := listing.Tags(ctx, m.events.Store, row.Executing)
	if err != nil || len(tags) == 0 {
		return 0, err
	}
	spans := make([]row.Span, len(tags))
	for i, tag := range tags {
		spans[i] = row.Span{Status: row.Executing, Tag: tag, From: m.events.Now()}
	}
	first, err := m.events.Store.Places(ctx, spans, 1)
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
	page, err := m.events.Store.Due(ctx, row.Window{Tags: m.arm.Tags.List(), To: until + 1, Limit: nextPage})
	if err != nil || len(page) == 0 {
		return next, false, err
	}
	start := max(page[0].Due, m.events.Now())
	page = slices.DeleteFunc(page, func(d row.Due) bool { return d.Due > start })
	return slices.MinFunc(page, func(a, b row.Due) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	}), true, nil
}

// Run claims a due task, runs its processor, and writes the result; hooks have returned when it does. It returns what
// the processor returned, and whether the task could be claimed.
func (m *Manual) Run(ctx context.Context, d row.Due) (result error, ran bool, err error) {
	result, ran, err = m.pool.RunNow(ctx, d)
	if err != nil {
		return nil, false, err
	}
	m.events.Wait()
	m.events.WaitForHooks(ctx)
	return result, ran, nil
}

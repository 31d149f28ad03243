package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/planner"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/spec"
	"github.com/delaytask/delaytask/processor"
)

const (
	// plantAhead is how long before they are due ticks are planted: enough for another node to take over a share, and
	// for the look-ahead of all.
	plantAhead = 10 * time.Second
	// plantPeriods is the same as a number of look-aheads, for those that are longer than usual.
	plantPeriods = 5
)

// errPastNextTick is why a run of a schedule is not tried again.
var errPastNextTick = errors.New("no further attempt, because it would begin after the next tick of its schedule")

// pastNextTick fails a run whose further attempt comes after the next tick, as when it has waited through an outage.
// The attempt is not spent.
func pastNextTick(a *attempt, now row.Time) (settlement, bool) {
	if a.row.Attempt == 1 && a.row.CrashCount == 0 || !a.row.TickOf.Past(now) {
		return settlement{}, false
	}
	before, _, _ := strings.Cut(a.row.ErrorStack, "\n")
	err := fmt.Errorf("%s; %w", before, errPastNextTick)
	c := changeOf(&a.row, row.Failed)
	c.Due, c.Finish, c.Attempt, c.ErrorStack = now, a.row.TickOf.End(now), a.row.Attempt-1, err.Error()
	return settlement{attempt: a, change: c, kind: metrics.RunFailed, err: err}, true
}

func newPlanner(c *deps, arm *armer, census *census, nextID func() int64) *planner.Planner {
	return planner.New(c.Lifecycle, planner.Config{
		Store: c.store, Now: c.clock.AtLeast, NextID: nextID, Mine: arm.plans, Committed: arm.written,
		Nodes: census.nodes,
		Ahead: max(plantAhead, plantPeriods*c.cfg.LookAhead), ZoneData: spec.ZoneData(),
	})
}

// Declare says which schedules the program declares. It is called before Start.
func (e *Engine) Declare(set planner.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.declared = set
}

// declare keeps what is stored as the program declares it. The node's row says so from its next heartbeat on.
func (e *Engine) declare() {
	set := e.declared
	e.member.SetDeclares(set.Declares(e.census.token))
	e.findersDone.Go(func() { e.planner.Assert(e.finders, set) })
}

// nodes returns the live nodes, and the database's time at which they were. It does not know them before this node has
// found itself among them.
func (c *census) nodes() (live []row.Node, now row.Time, known bool) {
	n := c.last.Load()
	if n == nil || !n.self {
		return nil, 0, false
	}
	return slices.Collect(maps.Values(n.living)), n.time, true
}

// Schedules returns what keeps the schedules.
func (e *Engine) Schedules() *planner.Planner { return e.planner }

// NewSchedule makes what is stored of a schedule that a caller wants, but for its spec.
func (e *Engine) NewSchedule(save *processor.ScheduleSave) row.Schedule {
	run, set := e.saver.RunOf(&save.Task), &save.Settings
	s := row.Schedule{
		Name: save.Name, Tag: run.Tag, Body: run.Body, Headers: run.Headers, MaxAttempts: run.MaxAttempts, TTR: run.TTR,
		Priority: run.Priority, StartWithin: set.StartWithin, Jitter: set.Jitter, PauseAfter: set.PauseAfter,
		MaxRuns: set.MaxRuns, KeepRuns: cmp.Or(set.KeepRuns, processor.DefaultKeepRuns),
		RetryPastNext: set.RetryPastNext,
	}
	switch set.Overlap {
	case processor.OverlapQueueOne:
		s.Overlap = row.OverlapQueueOne
	case processor.OverlapReplace:
		s.Overlap = row.OverlapReplace
	case processor.OverlapAllow:
		s.Overlap, s.MaxOpen = row.OverlapAllow, cmp.Or(set.MaxOpen, processor.DefaultMaxOpen)
	}
	switch set.Missed {
	case processor.MissedSkip:
		s.Missed = row.MissedSkip
	case processor.MissedAll:
		s.Missed = row.MissedAll
	}
	return s
}

// plans reports whether this process looks first at a schedule.
func (a *armer) plans(schedule int64) bool {
	s := a.shares.Load()
	return s == nil || s.view.Plans(schedule)
}

// confirmEnd tells that the processor of a cancelled run has returned, or was not called. At the end of the grace of a
// stop tasks are released while their processors go on.
func (s *settler) confirmEnd(a *attempt) {
	at, lease, _ := a.state()
	if a.row.TickOf == nil || lease != leaseCancelled || at != claimed && at != returned {
		return
	}
	s.Go(func() {
		s.confirm(s.Life, a.row.TickOf.Schedule, a.row.ID)
	})
}

// ScheduledRun is what a processor sees of the schedule of its task.
func ScheduledRun(of *row.TickOf) *processor.ScheduledRun {
	if of == nil {
		return nil
	}
	return &processor.ScheduledRun{
		Name: of.Schedule, Tick: of.Tick.Std(), Cause: processor.Cause(of.Cause.String()), Previous: of.Previous.Std(),
		Next: of.Following.Std(), LastSuccess: of.Success.Std(), Missed: of.Missed,
	}
}

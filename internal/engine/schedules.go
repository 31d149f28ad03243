package engine

import (
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

const (
	// plantAhead is how long before they are due ticks are planted: enough for another node to take over a share, and
	// for the look-ahead of all.
	plantAhead = 10 * time.Second
	// plantPeriods is the same as a number of look-aheads, for those that are longer than usual.
	plantPeriods = 5
	// planBudget is how long a node may search for ticks in a second. Some definitions are expensive to search.
	planBudget = 100 * time.Millisecond
)

func newPlanner(arm *arm.Arm, lookAhead time.Duration, nextID func() int64) *plan.Planner {
	return plan.New(arm.Table, plan.Config{
		Now: arm.Bounds.AtLeast, NextID: nextID, Mine: arm.Plans, Committed: arm.Written,
		Nodes: arm.Census.Nodes,
		Ahead: max(plantAhead, plantPeriods*lookAhead), ZoneData: spec.ZoneData(),
		Budget: planBudget,
	})
}

// Declare says which schedules the program declares. It is called before Start.
func (e *Engine) Declare(set plan.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.declared = set
}

// declare keeps what is stored as the program declares it. The node's row says so from its next heartbeat on.
func (e *Engine) declare() {
	set := e.declared
	e.member.SetDeclares(set.Declares(e.arm.Census.Process.Token))
	e.findersDone.Go(func() { e.planner.Assert(e.finders, set) })
}

// Schedules returns what keeps the schedules.
func (e *Engine) Schedules() *plan.Planner { return e.planner }

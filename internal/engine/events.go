package engine

import (
	"context"

	"github.com/delaytask/delaytask/internal/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// events tells what has become of tasks. It tells subscribers, callers who wait for a task, the functions of the user,
// the log, and the counts of the rollup. By embedding it a part has the store with its steps, the database's time,
// calls and the log.
type events struct {
	*table
	hooks  hooks
	watch  watch
	counts *rollup.Counts
	rollup *rollup.Writer
	runs   scheduleWatch
}

// scheduleWatch is told of schedules and their runs. The planner is.
type scheduleWatch interface {
	Look(at row.Time)                                         // the first schedule needs attention then
	Ended(schedule string)                                    // a run of the schedule has ended
	Confirm(ctx context.Context, schedule string, task int64) // the processor of a cancelled run has returned
}

// eventsConfig is what the events of an engine are made of.
type eventsConfig struct {
	Node string // the token of the process

	// The hooks of the user; nil for none.
	OnFailed  func(context.Context, *processor.Task, error)
	OnRescued func(context.Context, *processor.Task)
}

// newEvents makes the events of an engine. A change of the server of the database is marked in the rollup.
func newEvents(t *table, cfg eventsConfig) *events {
	e := &events{table: t, counts: rollup.NewCounts()}
	e.hooks.failed, e.hooks.rescued = cfg.OnFailed, cfg.OnRescued
	e.watch.waits = waits{tasks: map[int64]*awaited{}, kick: make(chan struct{}, 1)}
	e.rollup = rollup.NewWriter(rollup.Config{
		Counts: e.counts, Store: t.store, Life: t.Lifecycle, Now: t.clock.AtLeast, Node: cfg.Node,
	})
	t.moved = func(r row.Reading) {
		e.rollup.Mark(r.Time, "", cfg.Node, row.Mark{Kind: row.MarkFailover, Name: r.Server})
	}
	return e
}

// watchSchedules lets the planner hear of schedules and their runs. It is called before the first task is stored.
func (e *events) watchSchedules(w scheduleWatch) { e.runs = w }

// scheduled tells when the first schedule needs attention, by a read of the table that was made for another reason.
func (e *events) scheduled(look row.Time) { e.runs.Look(look) }

// confirmed tells that the processor of a cancelled run of a schedule has returned.
func (e *events) confirmed(ctx context.Context, of *row.TickOf, task int64) {
	e.runs.Confirm(ctx, of.Schedule, task)
}

// close ends all subscriptions and the reader of the waits, once nothing more is stored and the life has ended.
func (e *events) close() {
	e.watch.waits.close()
	e.watch.close()
}

// putBack puts executing rows back to pending without costing an attempt, as far as they are still as they were seen.
// It returns the rows as they are afterwards.
func (e *events) putBack(seen []row.State, why string) (released []row.Row) {
	if len(seen) == 0 {
		return nil
	}
	ids, versions := make([]int64, len(seen)), make(map[int64]int64, len(seen))
	for i, s := range seen {
		ids[i], versions[s.ID] = s.ID, s.Version
	}
	ctx, cancel := e.Call()
	defer cancel()
	rows, broken, err := e.store.Get(ctx, nil, ids)
	if err != nil {
		e.Failed("releasing", err)
		return nil
	}
	e.discard(broken)
	now := e.now()
	for _, r := range rows {
		if r.Status != row.Executing || r.Version != versions[r.ID] {
			continue
		}
		// The lease was counted from the later of the claim and the due time that it took.
		change := releaseOf(&r, max(r.Due.Add(-r.TTR), now))
		if r.FirstStart() { // the task was handed to no processor
			change.Execution = 0
		}
		applied, err := e.update(ctx, []row.Change{change})
		if err != nil {
			e.Failed("releasing", err)
			continue
		}
		if applied == 1 {
			e.Log.Info("released", "task", r.ID, "tag", r.Tag, "version", r.Version, "why", why)
			r.Status, r.Version, r.Due, r.Attempt = change.To, r.Version+1, change.Due, change.Attempt
			released = append(released, r)
		}
	}
	return released
}

// discarder is what fails rows that cannot be decoded: a store.
type discarder interface {
	Discard(ctx context.Context, broken []row.Broken) (discarded int, err error)
	States(ctx context.Context, ids []int64) ([]row.State, error)
}

// discard fails rows that cannot be decoded.
func (e *events) discard(broken []row.Broken) {
	ctx, cancel := e.Call()
	defer cancel()
	if err := e.discardBy(ctx, e.store, broken); err != nil {
		e.Failed("failing rows that cannot be decoded", err)
	}
}

// discardBy fails rows that cannot be decoded, and reports those that it failed. Where another process has met some of
// them at the same time, both may report a row.
func (e *events) discardBy(ctx context.Context, by discarder, broken []row.Broken) error {
	if len(broken) == 0 {
		return nil
	}
	n, err := by.Discard(ctx, broken)
	if err != nil || n == 0 {
		return err
	}
	var states map[int64]row.State
	if n < len(broken) {
		found, err := by.States(ctx, idsOf(broken, func(b row.Broken) int64 { return b.ID }))
		if err != nil {
			return err
		}
		states = statesByID(found)
	}
	for _, b := range broken {
		if s := states[b.ID]; n == len(broken) || s.Version == b.Version+1 && s.Status == row.Failed {
			e.discarded(b)
		}
	}
	return nil
}

// discarded reports a row that was failed because it cannot be decoded.
func (e *events) discarded(b row.Broken) {
	e.Log.Error("a row cannot be decoded and is set to failed; repair it and retry the task", "task", b.ID,
		"tag", b.Read.Tag, "version", b.Version, "err", b.Reason)
	e.tell(processor.EventFailed, &b.Read, brokenError(b))
	e.onFailed(&b.Read, b.Read.Expected, brokenError(b))
}

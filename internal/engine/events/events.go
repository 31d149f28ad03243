// Package events tells what has become of tasks.
//
//	events.go   counts, subscriptions, schedules, and rows that are failed where they are found
//	putback.go  claimed rows that this process does not run
//	waits.go    callers who wait for the end of a task
//	hooks.go    the functions of the user, and the log
package events

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// Events tells what has become of tasks. It tells subscribers, callers who wait for a task, the functions of the user,
// the log, and the counts of the rollup. By embedding it a part has the store with its steps, the database's time,
// calls and the log.
type Events struct {
	*table.Table
	Counts *rollup.Counts // of what has become of tasks, and how late they started
	Rollup *rollup.Writer // writes the counts, and marks beside them

	hooks    hooks
	watch    watch
	runs     ScheduleWatch
	putBacks *batch.Coalescer[*putBackCall]
}

// ScheduleWatch is told of schedules and their runs. The planner is.
type ScheduleWatch interface {
	Look(at row.Time)                                         // the first schedule needs attention then
	Behind() bool                                             // one needs attention now, or may
	Ended(schedule string)                                    // a run of the schedule has ended
	Confirm(ctx context.Context, schedule string, task int64) // the processor of a cancelled run has returned

	// TakeBack asks whether the first attempt of a run, which was claimed, may begin now. Its due time is the one that
	// it was claimed at. A run that was taken back is cancelled.
	TakeBack(ctx context.Context, run *row.Row, now row.Time) (taken bool, err error)
}

// Config is what the events of an engine are made of.
type Config struct {
	Node string // the token of the process

	// The hooks of the user; nil for none.
	OnFailed  func(context.Context, *delaytask.Task, error)
	OnRescued func(context.Context, *delaytask.Task)
}

// New makes the events of an engine. A change of the server of the database is marked in the rollup.
func New(t *table.Table, cfg Config) *Events {
	e := &Events{Table: t, Counts: rollup.NewCounts()}
	e.hooks.failed, e.hooks.rescued = cfg.OnFailed, cfg.OnRescued
	e.putBacks = batch.New(batch.Config[*putBackCall]{
		Flush: e.putBackAll, Panicked: e.putBackPanicked, MaxItems: putBackPage, Count: (*putBackCall).rows,
	})
	e.watch.waits = waits{tasks: map[int64]*awaited{}, kick: make(chan struct{}, 1)}
	e.Rollup = rollup.NewWriter(rollup.Config{
		Counts: e.Counts, Store: t.Store, Life: t.Lifecycle, Now: t.Bounds.AtLeast, Node: cfg.Node,
	})
	t.Moved = func(r row.Reading) {
		e.Rollup.Mark(r.Time, "", cfg.Node, row.Mark{Kind: report.MarkFailover, Name: r.Server})
	}
	return e
}

// WatchSchedules lets the planner hear of schedules and their runs. It is called before the first task is stored.
func (e *Events) WatchSchedules(w ScheduleWatch) { e.runs = w }

// Scheduled tells when the first schedule needs attention, by a read of the table that was made for another reason.
func (e *Events) Scheduled(look row.Time) { e.runs.Look(look) }

// Unplanned reports whether a schedule needs attention, or may.
func (e *Events) Unplanned() bool { return e.runs.Behind() }

// TakenBack asks whether a run of a schedule that was claimed is taken back, because it comes too late.
func (e *Events) TakenBack(ctx context.Context, run *row.Row, now row.Time) (bool, error) {
	return e.runs.TakeBack(ctx, run, now)
}

// Confirmed tells that the processor of a cancelled run of a schedule has returned.
func (e *Events) Confirmed(ctx context.Context, of *row.TickOf, task int64) {
	e.runs.Confirm(ctx, of.Schedule, task)
}

// Close ends all subscriptions and the reader of the waits, once nothing more is stored and the life has ended.
func (e *Events) Close() {
	e.watch.waits.close()
	e.watch.close()
}

// discarder is what fails rows that cannot be decoded: a store.
type discarder interface {
	Discard(ctx context.Context, broken []row.Broken) (discarded int, err error)
	States(ctx context.Context, ids []int64) ([]row.State, error)
}

// Discard fails rows that cannot be decoded.
func (e *Events) Discard(broken []row.Broken) {
	ctx, cancel := e.Call()
	defer cancel()
	if err := e.DiscardBy(ctx, e.Store, broken); err != nil {
		e.Failed("failing rows that cannot be decoded", err)
	}
}

// DiscardBy fails rows that cannot be decoded, and reports those that it failed. Where another process has met some of
// them at the same time, both may report a row.
func (e *Events) DiscardBy(ctx context.Context, by discarder, broken []row.Broken) error {
	if len(broken) == 0 {
		return nil
	}
	n, err := by.Discard(ctx, broken)
	if err != nil || n == 0 {
		return err
	}
	var states map[int64]row.State
	if n < len(broken) {
		found, err := by.States(ctx, row.IDsOf(broken, func(b row.Broken) int64 { return b.ID }))
		if err != nil {
			return err
		}
		states = row.StatesByID(found)
	}
	for _, b := range broken {
		if s := states[b.ID]; n == len(broken) || s.Version == b.Version+1 && s.Status == row.Failed {
			e.discarded(b)
		}
	}
	return nil
}

// discarded reports a row that was failed because it cannot be decoded.
func (e *Events) discarded(b row.Broken) {
	e.Log.Error("a row cannot be decoded and is set to failed; repair it and retry the task", "task", b.ID,
		"tag", b.Read.Tag, "version", b.Version, "err", b.Reason)
	e.Tell(delaytask.EventFailed, &b.Read, table.BrokenError(b))
	e.OnFailed(&b.Read, b.Read.Expected, table.BrokenError(b))
}

// watch knows subscribers and those who wait for a task. Without a watcher, each event costs a count and the read of
// one counter.
type watch struct {
	watchers atomic.Int64 // subscriptions and waits

	mu            sync.RWMutex // guards what follows; innermost
	subscriptions []*Subscription
	closed        bool

	waits waits
}

// Tell reports what has become of a task. Its row is stored.
func (e *Events) Tell(kind delaytask.EventKind, r *row.Row, err error) {
	e.Counts.Event(r.Tag, kind)
	if r.TickOf != nil && kind.Ends() {
		e.runs.Ended(r.TickOf.Schedule)
	}
	if e.Watched() && kind.Ends() {
		e.watch.waits.ended(r.ID)
	}
	e.publish(kind, r, err)
}

// Saved reports that a task was stored. No count, schedule or wait asks for that.
func (e *Events) Saved(r *row.Row) { e.publish(delaytask.EventSaved, r, nil) }

// publish sends an event to those who subscribe.
func (e *Events) publish(kind delaytask.EventKind, r *row.Row, err error) {
	if !e.Watched() {
		return
	}
	w := &e.watch
	event := delaytask.Event{
		Kind: kind, ID: r.ID, Tag: r.Tag, Attempt: r.Attempt, Time: e.Now().Std(), Err: err,
		Key: row.OwnKey(row.DecodeHeaders(r.Headers)[delaytask.AppHeader], r.Key),
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, s := range w.subscriptions {
		s.send(event)
	}
}

// Watched reports whether a subscriber or a wait hears of events.
func (e *Events) Watched() bool { return e.watch.watchers.Load() > 0 }

// Subscription receives the events of this process.
type Subscription struct {
	watch   *watch
	config  delaytask.SubscribeConfig
	events  chan delaytask.Event
	dropped atomic.Uint64
}

// Subscribe begins to send the events that the config asks for. It returns [delaytask.ErrClosed] after a stop.
func (e *Events) Subscribe(config delaytask.SubscribeConfig) (*Subscription, error) {
	w := &e.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, delaytask.ErrClosed
	}
	s := &Subscription{watch: w, config: config, events: make(chan delaytask.Event, config.Buffer)}
	w.subscriptions = append(w.subscriptions, s)
	w.watchers.Add(1)
	return s, nil
}

// Events returns the channel of the events. It is closed by Close, and when the scheduler has stopped.
func (s *Subscription) Events() <-chan delaytask.Event { return s.events }

// Dropped returns how many events found the buffer full.
func (s *Subscription) Dropped() uint64 { return s.dropped.Load() }

// Close ends the subscription. Events in the buffer can still be received.
func (s *Subscription) Close() {
	w := s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.subscriptions, s); i >= 0 {
		w.subscriptions = slices.Delete(w.subscriptions, i, i+1)
		w.watchers.Add(-1)
		close(s.events)
	}
}

// send never waits: what stores results must not wait for a subscriber.
func (s *Subscription) send(event delaytask.Event) {
	c := &s.config
	if len(c.Tags) > 0 && !slices.Contains(c.Tags, event.Tag) ||
		len(c.Kinds) > 0 && !slices.Contains(c.Kinds, event.Kind) {
		return
	}
	select {
	case s.events <- event:
	default:
		s.dropped.Add(1)
	}
}

// close ends all subscriptions, once nothing more is stored.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, s := range w.subscriptions {
		close(s.events)
	}
	w.watchers.Add(-int64(len(w.subscriptions)))
	w.subscriptions = nil
}

// TaskOf is what the processor sees of the row.
func TaskOf(r *row.Row, due row.Time) *delaytask.Task {
	headers := row.DecodeHeaders(r.Headers)
	return &delaytask.Task{
		ID: r.ID, Tag: r.Tag, Key: row.OwnKey(headers[delaytask.AppHeader], r.Key), Body: r.Body, Attempt: r.Attempt,
		Crashes: r.CrashCount, Version: r.Version, Expected: r.Expected.Std(), Due: due.Std(), Headers: headers,
		Priority: r.Priority, Schedule: ScheduledRun(r.TickOf),
	}
}

// ScheduledRun is what a processor sees of the schedule of its task.
func ScheduledRun(of *row.TickOf) *delaytask.ScheduledRun {
	if of == nil {
		return nil
	}
	in := func(t row.Time) time.Time { return request.In(t.Std(), of.Zone) }
	return &delaytask.ScheduledRun{
		Name: of.Schedule, Tick: in(of.Tick), Cause: of.Cause.Text(), Previous: in(of.Previous), Next: in(of.Following),
		LastSuccess: in(of.Success), Missed: of.Missed,
	}
}

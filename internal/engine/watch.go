package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// watch knows subscribers and those who wait for a task. Without a watcher, each event costs a count and the read of
// one counter.
type watch struct {
	watchers atomic.Int64 // subscriptions and waits

	mu            sync.RWMutex // guards what follows; innermost
	subscriptions []*Subscription
	closed        bool

	waits waits
}

// tell reports what has become of a task. Its row is stored.
func (e *events) tell(kind processor.EventKind, r *row.Row, err error) {
	e.counts.Event(r.Tag, kind)
	if r.TickOf != nil && kind.Ends() {
		e.runs.Ended(r.TickOf.Schedule)
	}
	w := &e.watch
	if w.watchers.Load() == 0 {
		return
	}
	if kind.Ends() {
		w.waits.ended(r.ID)
	}
	event := processor.Event{
		Kind: kind, ID: r.ID, Tag: r.Tag, Attempt: r.Attempt, Time: e.now().Std(), Err: err,
		Key: row.OwnKey(row.DecodeHeaders(r.Headers)[processor.AppHeader], r.Key),
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, s := range w.subscriptions {
		s.send(event)
	}
}

// watched reports whether a subscriber or a wait hears of events.
func (e *events) watched() bool { return e.watch.watchers.Load() > 0 }

// Subscription receives the events of this process.
type Subscription struct {
	watch   *watch
	config  processor.SubscribeConfig
	events  chan processor.Event
	dropped atomic.Uint64
}

// Subscribe begins to send the events that the config asks for. It returns [processor.ErrClosed] after a stop.
func (e *events) Subscribe(config processor.SubscribeConfig) (*Subscription, error) {
	w := &e.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, processor.ErrClosed
	}
	s := &Subscription{watch: w, config: config, events: make(chan processor.Event, config.Buffer)}
	w.subscriptions = append(w.subscriptions, s)
	w.watchers.Add(1)
	return s, nil
}

// Events returns the channel of the events. It is closed by Close, and when the scheduler has stopped.
func (s *Subscription) Events() <-chan processor.Event { return s.events }

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
func (s *Subscription) send(event processor.Event) {
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

// taskOf is what the processor sees of the row.
func taskOf(r *row.Row, due row.Time) *processor.Task {
	headers := row.DecodeHeaders(r.Headers)
	return &processor.Task{
		ID: r.ID, Tag: r.Tag, Key: row.OwnKey(headers[processor.AppHeader], r.Key), Body: r.Body, Attempt: r.Attempt,
		Version: r.Version, Expected: r.Expected.Std(), Due: due.Std(), Headers: headers, Priority: r.Priority,
		Schedule: ScheduledRun(r.TickOf),
	}
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

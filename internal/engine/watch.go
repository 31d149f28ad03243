package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/delaytask/delaytask/internal/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// watch tells subscribers and those who wait for a task what this process has stored. Without a watcher, each event
// costs a count and the read of one counter.
type watch struct {
	watchers atomic.Int64 // subscriptions and waits
	now      func() row.Time
	counts   *rollup.Counts
	runEnded func(schedule string) // told of the ends of runs of schedules

	mu            sync.RWMutex // guards what follows; innermost
	subscriptions []*Subscription
	closed        bool

	waits waits
}

func newWatch(now func() row.Time, counts *rollup.Counts) *watch {
	return &watch{now: now, counts: counts, waits: waits{tasks: map[int64]*awaited{}, kick: make(chan struct{}, 1)}}
}

// tell reports what has become of a task. Its row is stored.
func (w *watch) tell(kind processor.EventKind, r *row.Row, err error) {
	w.counts.Event(r.Tag, kind)
	if r.TickOf != nil && kind.Ends() {
		w.runEnded(r.TickOf.Schedule)
	}
	if w.watchers.Load() == 0 {
		return
	}
	if kind.Ends() {
		w.waits.ended(r.ID)
	}
	event := processor.Event{
		Kind: kind, ID: r.ID, Tag: r.Tag, Attempt: r.Attempt, Time: w.now().Std(), Err: err,
		Key: row.OwnKey(row.DecodeHeaders(r.Headers)[processor.AppHeader], r.Key),
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, s := range w.subscriptions {
		s.send(event)
	}
}

// Subscription receives the events of this process.
type Subscription struct {
	watch   *watch
	config  processor.SubscribeConfig
	events  chan processor.Event
	dropped atomic.Uint64
}

// Subscribe begins to send the events that the config asks for. It returns [processor.ErrClosed] after a stop.
func (e *Engine) Subscribe(config processor.SubscribeConfig) (*Subscription, error) {
	w := e.watch
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

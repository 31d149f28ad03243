package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// kindsOf returns the kinds of the events of a task, in their order, of those that wait to be received.
func kindsOf(s *events.Subscription, id int64) (kinds []delaytask.EventKind) {
	for range len(s.Events()) {
		if event := <-s.Events(); event.ID == id {
			kinds = append(kinds, event.Kind)
		}
	}
	return kinds
}

func (w *world) subscribe(e *Engine, config delaytask.SubscribeConfig) *events.Subscription {
	w.Helper()
	config, err := config.Checked()
	w.must(err)
	s, err := e.Subscribe(config)
	w.must(err)
	return s
}

// statesEvery is how often the states of tasks are read that callers wait for.
const statesEvery = 500 * time.Millisecond

// stateSizes is a store that tells of how many rows the states were read last.
type stateSizes struct {
	store.Store
	last *atomic.Int64
}

func (s stateSizes) States(ctx context.Context, ids []int64) ([]row.State, error) {
	s.last.Store(int64(len(ids)))
	return s.Store.States(ctx, ids)
}

func TestSubscriptionReceivesWhatAProcessStores(t *testing.T) {
	const (
		saved, began, retried = delaytask.EventSaved, delaytask.EventStarted, delaytask.EventRetried
		failed                = delaytask.EventFailed
	)
	inBubble(t, func(w *world) {
		fails := func(context.Context, *delaytask.Task) error { return errors.New("no") }
		e := w.engine(w.store, serving{"good": nothing, "bad": fails})
		s := w.subscribe(e, delaytask.SubscribeConfig{})
		want := map[int64][]delaytask.EventKind{
			w.save(e, "good", 0): {saved, began, delaytask.EventCompleted},
			w.save(e, "bad", time.Second, delaytask.WithMaxAttempts(2)): {saved, began, retried, began, failed},
			w.save(e, "good", time.Hour):                                {saved, delaytask.EventCancelled},
			w.save(e, "popped", 0):                                      {saved, began, delaytask.EventCompleted},
		}
		for id, kinds := range want {
			if kinds[1] == delaytask.EventCancelled {
				_, err := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false)
				w.must(err)
			}
		}
		popped, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"popped"}, Max: 1})
		w.must(err)
		w.must(e.Finish(w.Context(), popped[0].ID, popped[0].Version))
		time.Sleep(10 * time.Minute)
		var all []delaytask.Event
		for range len(s.Events()) {
			all = append(all, <-s.Events())
		}
		for id, kinds := range want {
			var got []delaytask.EventKind
			for _, event := range all {
				if event.ID == id {
					got = append(got, event.Kind)
				}
			}
			if !slices.Equal(got, kinds) {
				w.Errorf("the events of a task are %v, want %v", got, kinds)
			}
		}
	})
}

func TestSubscriptionReceivesRescues(t *testing.T) {
	inBubble(t, func(w *world) {
		dying := w.engine(w.store, serving{"a": untilEnd(time.Hour, nil)})
		id := w.save(dying, "a", 0)
		time.Sleep(10 * time.Second)
		w.crash(dying)
		e := w.engine(w.store, serving{"a": nothing})
		s := w.subscribe(e, delaytask.SubscribeConfig{})
		time.Sleep(time.Minute)
		want := []delaytask.EventKind{delaytask.EventRescued, delaytask.EventStarted, delaytask.EventCompleted}
		if got := kindsOf(s, id); !slices.Equal(got, want) {
			w.Errorf("the events are %v, want %v", got, want)
		}
	})
}

// Both nodes find the row whose lease is over, and one of them fails it.
func TestRowThatCannotBeReadIsAFailedTaskToSubscribersAndHooks(t *testing.T) {
	inBubbles(t, map[string]row.Row{
		"claimed": {Status: row.Pending},
		"rescued": {Status: row.Executing, Version: 3, Attempt: 1},
	}, func(w *world, r row.Row) {
		now := row.At(time.Now())
		r.ID, r.Tag, r.Body, r.TTR, r.Headers = 1000, "a", []byte("{}"), time.Minute, []byte("{")
		r.Expected, r.Due = now, now
		w.store.Plant(r)
		told := make(chan *delaytask.Task, 10)
		var events []*events.Subscription
		for range 2 {
			e := w.idle(w.store, serving{"a": nothing}, func(c *Config) {
				c.OnFailed = func(_ context.Context, task *delaytask.Task, err error) {
					told <- task
					if !errors.Is(err, delaytask.ErrBroken) {
						w.Errorf("failed because of %v", err)
					}
				}
			})
			events = append(events, w.subscribe(e, delaytask.SubscribeConfig{Tags: []string{"a"}}))
			w.must(e.Start(w.Context()))
		}
		time.Sleep(time.Minute)
		if n := len(told); n != 1 {
			w.Fatalf("OnFailed was called %d times", n)
		}
		if task := <-told; task.ID != 1000 || task.Tag != "a" {
			w.Errorf("OnFailed was called with %+v", task)
		}
		got := slices.Concat(kindsOf(events[0], 1000), kindsOf(events[1], 1000))
		if !slices.Equal(got, []delaytask.EventKind{delaytask.EventFailed}) {
			w.Errorf("the events are %v", got)
		}
	})
}

func TestRowThatAnotherProcessHasMendedIsNoFailedTask(t *testing.T) {
	inBubble(t, func(w *world) {
		for id := range int64(2) {
			w.store.Plant(row.Row{ID: 1000 + id, Tag: "a", Headers: []byte("{")})
		}
		_, broken, err := w.store.Get(w.Context(), nil, []int64{1000, 1001})
		w.must(err)
		w.store.Plant(row.Row{ID: 1000, Tag: "a", Version: 1})
		e := w.engine(w.store, nil)
		s := w.subscribe(e, delaytask.SubscribeConfig{})
		e.Discard(broken)
		if n := len(s.Events()); n != 1 || (<-s.Events()).ID != 1001 {
			w.Errorf("%d events, want one of the row that was failed", n)
		}
	})
}

func TestBulkCancelIsAnEventOfEachTaskItChanged(t *testing.T) {
	inBubble(t, func(w *world) {
		var raced sync.Once
		var other *Engine
		var ids []int64
		store := at(w.store, "Update", func(_ context.Context, do func() error) error {
			raced.Do(func() { // between the read of the page and its change
				time.Sleep(time.Millisecond)
				_, err := other.Cancel(context.WithoutCancel(w.Context()), nil, control.Ref{ID: ids[0]}, false)
				w.must(err)
			})
			return do()
		})
		other = w.engine(w.store, serving{})
		e := w.engine(store, serving{})
		ids = w.many(e, 3, "a", time.Hour)
		s := w.subscribe(e, delaytask.SubscribeConfig{Kinds: []delaytask.EventKind{delaytask.EventCancelled}})
		n, _, err := e.CancelWhere(w.Context(), control.Bulk{})
		w.must(err)
		if got := len(s.Events()); n != 2 || got != 2 {
			w.Errorf("%d tasks were cancelled with %d events, want 2", n, got)
		}
	})
}

func TestSubscriberThatDoesNotReceiveHoldsUpNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing, "b": nothing})
		s := w.subscribe(e, delaytask.SubscribeConfig{
			Tags: []string{"a"}, Kinds: []delaytask.EventKind{delaytask.EventCompleted}, Buffer: 3,
		})
		ids := slices.Concat(w.many(e, 10, "a", time.Second), w.many(e, 10, "b", time.Second))
		time.Sleep(time.Minute)
		w.allCompleted(ids, time.Second)
		if got, dropped := len(s.Events()), s.Dropped(); got != 3 || dropped != 7 {
			w.Errorf("%d events wait and %d are dropped, want 3 and 7", got, dropped)
		}
		s.Close()
		s.Close()
		if e.events.Watched() {
			w.Error("watchers are left")
		}
		after := w.subscribe(e, delaytask.SubscribeConfig{})
		w.must(e.Stop(w.Context()))
		if _, open := <-after.Events(); open {
			w.Error("the channel is open after a stop")
		}
		after.Close()
		if _, err := e.Subscribe(delaytask.SubscribeConfig{Buffer: 1}); !errors.Is(err, delaytask.ErrClosed) {
			w.Errorf("after a stop: %v", err)
		}
	})
}

// waitAnswer is what a wait returned, and when.
type waitAnswer struct {
	rows []row.Row
	err  error
	at   time.Time
}

func (w *world) waitFor(e *Engine, id int64) <-chan waitAnswer {
	answer := make(chan waitAnswer, 1)
	go func() {
		rows, _, err := e.WaitTask(w.Context(), id)
		answer <- waitAnswer{rows, err, time.Now()}
	}()
	return answer
}

func TestWaitIsAnsweredAtOnceForWhatEndsHere(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		id := w.save(e, "a", 10*time.Second)
		first, second := w.waitFor(e, id), w.waitFor(e, id)
		time.Sleep(time.Minute)
		end := w.row(id).Due.Std()
		for _, answer := range []waitAnswer{<-first, <-second, <-w.waitFor(e, id)} {
			w.must(answer.err)
			if answer.rows[0].Status != row.Completed {
				w.Errorf("answered with a task that is %v", answer.rows[0].Status)
			}
			if late := answer.at.Sub(end); late > 20*time.Millisecond && answer.at.Sub(end) < time.Minute/2 {
				w.Errorf("answered %v after the end", late)
			}
		}
		if e.events.Watched() {
			w.Error("watchers are left")
		}
	})
}

func TestOneReaderServesAllWaitsForWhatEndsElsewhere(t *testing.T) {
	inBubble(t, func(w *world) {
		var reads, looks atomic.Int64
		store := at(w.store, "States", func(_ context.Context, do func() error) error {
			reads.Add(1)
			return do()
		})
		store = at(store, "Get", func(_ context.Context, do func() error) error {
			looks.Add(1)
			time.Sleep(time.Millisecond)
			return do()
		})
		runs := w.engine(w.store, serving{"a": nothing})
		idle := w.engine(store, serving{})
		ids := w.many(runs, 200, "a", 10*time.Second)
		var answers []<-chan waitAnswer
		for _, id := range ids {
			answers = append(answers, w.waitFor(idle, id))
		}
		gone := w.waitFor(idle, w.save(runs, "b", time.Hour))
		time.Sleep(5 * time.Second)
		before := reads.Load()
		if before > 11 {
			w.Errorf("%d reads in 5 s, want 2 a second", before)
		}
		if n := looks.Load(); n > 6 {
			w.Errorf("%d first looks at 201 tasks, want one for each 50", n)
		}
		time.Sleep(6 * time.Second)
		for i, answer := range answers {
			got := <-answer
			w.must(got.err)
			if late := got.at.Sub(w.row(ids[i]).Due.Std()); late > statesEvery+20*time.Millisecond {
				w.Errorf("answered %v after the end", late)
			}
		}
		if _, _, err := runs.CancelWhere(w.Context(), control.Bulk{}); err != nil {
			w.Fatal(err)
		}
		if got := <-gone; got.err != nil || got.rows[0].Status != row.Cancelled {
			w.Errorf("a cancelled task is answered with %v", got)
		}
		synctest.Wait()
		before = reads.Load()
		time.Sleep(time.Minute)
		if more := reads.Load() - before; more != 0 {
			w.Errorf("%d reads while nobody waits", more)
		}
	})
}

// The row is read before the end of the task, and arrives after it.
func TestTaskThatEndsWhileItsRowIsReadIsAnsweredAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		var e *Engine
		var id int64
		var race atomic.Bool
		store := at(w.store, "Get", func(_ context.Context, do func() error) error {
			err := do()
			if race.Swap(false) {
				_, err := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false)
				w.must(err)
			}
			return err
		})
		e = w.engine(store, serving{})
		id = w.save(e, "a", time.Hour)
		race.Store(true)
		began := time.Now()
		if got := <-w.waitFor(e, id); got.err != nil || got.at.Sub(began) > 20*time.Millisecond {
			w.Errorf("answered after %v: %v", got.at.Sub(began), got.err)
		}
	})
}

func TestWaitsThatComeAndGoLeaveNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		var asked atomic.Int64
		e := w.engine(stateSizes{w.store, &asked}, serving{})
		id, other := w.save(e, "a", time.Hour), w.save(e, "a", time.Hour)
		waiting := w.waitFor(e, other)
		for range 2000 {
			ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
			_, _, err := e.WaitTask(ctx, id)
			if cancel(); !errors.Is(err, context.DeadlineExceeded) {
				w.Fatal(err)
			}
		}
		time.Sleep(2 * statesEvery)
		if n := asked.Load(); n != 1 {
			w.Errorf("%d tasks are asked for, want 1", n)
		}
		_, err := e.Cancel(w.Context(), nil, control.Ref{ID: other}, false)
		w.must(err)
		w.must((<-waiting).err)
	})
}

func TestWaitOutlastsAnOutage(t *testing.T) {
	inBubble(t, func(w *world) {
		var away atomic.Bool
		store := at(w.store, "Get", func(_ context.Context, do func() error) error {
			if away.Load() {
				return classError(row.ClassNotApplied, "the database is away")
			}
			return do()
		})
		e := w.engine(store, serving{"a": nothing})
		id := w.save(e, "a", time.Second)
		away.Store(true)
		answer := w.waitFor(e, id)
		time.Sleep(10 * time.Second)
		away.Store(false)
		if got := <-answer; got.err != nil || got.rows[0].Status != row.Completed {
			w.Errorf("got %+v", got)
		}
	})
}

func TestWaitEndsWithItsContextItsTaskAndItsEngine(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{})
		if got := <-w.waitFor(e, 42); !errors.Is(got.err, delaytask.ErrNotFound) {
			w.Errorf("a task that does not exist: %v", got.err)
		}
		purged, waiting := w.save(e, "a", time.Hour), w.save(e, "a", time.Hour)
		gone, closed := w.waitFor(e, purged), w.waitFor(e, waiting)
		ctx, cancel := context.WithTimeout(w.Context(), 1100*time.Millisecond) // between two reads
		defer cancel()
		if _, _, err := e.WaitTask(ctx, waiting); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("after its context: %v", err)
		}
		r := w.row(purged)
		cancelled := table.ChangeOf(&r, row.Cancelled)
		cancelled.From, cancelled.Due = r.Status, row.At(time.Now())
		_, err := w.store.Update(w.Context(), nil, []row.Change{cancelled})
		w.must(err)
		_, _, err = w.store.Purge(w.Context(), row.Cancelled, []string{"a"}, row.MaxTime, 1)
		w.must(err)
		if got := <-gone; !errors.Is(got.err, delaytask.ErrNotFound) {
			w.Errorf("a task that was deleted: %v", got.err)
		}
		w.must(e.Stop(w.Context()))
		if got := <-closed; !errors.Is(got.err, delaytask.ErrClosed) {
			w.Errorf("after a stop: %v", got.err)
		}
	})
}

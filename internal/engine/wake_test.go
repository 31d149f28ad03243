package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/air"
	"github.com/delaytask/delaytask/processor"
)

// on connects an engine to the network.
func on(n *air.Network) func(*Config) { return by(n, nil) }

func by(n *air.Network, fate air.Fate) func(*Config) {
	return func(c *Config) { c.Waker = n.Endpoint(fate) }
}

var shortDelays = []time.Duration{
	0, 50 * time.Millisecond, 200 * time.Millisecond, time.Second, 1900 * time.Millisecond,
}

// Web processes save, worker processes run.
func TestTasksOfAProducerStartOnTimeOnEveryNode(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		producer := w.idle(w.store, nil, on(&net))
		for range 3 {
			w.engine(w.store, serving{"a": nothing}, on(&net))
		}
		time.Sleep(5 * time.Second)
		var ids []int64
		for i := range 60 {
			ids = append(ids, w.save(producer, "a", shortDelays[i%len(shortDelays)]))
			time.Sleep(37 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		w.allCompleted(ids, 10*time.Millisecond)
	})
}

func TestABulkSaveOfAProducerStartsOnTime(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		producer := w.idle(w.store, nil, on(&net))
		for range 2 {
			w.engine(w.store, serving{"a": nothing}, on(&net), func(c *Config) { c.Concurrency = 1000 })
		}
		time.Sleep(5 * time.Second)
		ids := w.many(producer, 500, "a", time.Second)
		time.Sleep(10 * time.Second)
		w.allCompleted(ids, 10*time.Millisecond)
	})
}

// Lost, doubled, late or forged datagrams change when a task starts, within the bounds of the overdue poll.
func TestBadWakeUpsDoNoHarm(t *testing.T) {
	fates := map[string]air.Fate{
		"lost":    func([]wake.Notice) []time.Duration { return nil },
		"doubled": func([]wake.Notice) []time.Duration { return []time.Duration{0, 0, 5 * time.Millisecond} },
		"late":    func([]wake.Notice) []time.Duration { return []time.Duration{3 * time.Second} },
		"forged": func(notices []wake.Notice) []time.Duration {
			for i := range notices {
				notices[i] = wake.Notice{Tag: "a", From: row.MinTime, To: row.MaxTime, Share: 7, Of: 8, State: i%2 == 0}
			}
			return []time.Duration{0}
		},
	}
	inBubbles(t, fates, func(w *world, fate air.Fate) {
		var net air.Network
		producer := w.idle(w.store, nil, by(&net, fate))
		for range 2 {
			w.engine(w.store, serving{"a": nothing}, on(&net))
		}
		time.Sleep(5 * time.Second)
		var ids []int64
		for i := range 40 {
			ids = append(ids, w.save(producer, "a", shortDelays[i%len(shortDelays)]))
			time.Sleep(111 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		w.allCompleted(ids, 600*time.Millisecond)
	})
}

// As the command delaytask save does.
func TestASaveBeforeAStopIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		w.engine(w.store, serving{"a": nothing}, on(&net))
		time.Sleep(5 * time.Second)
		producer := w.idle(at(w.store, "Nodes", func(_ context.Context, do func() error) error {
			time.Sleep(5 * time.Millisecond)
			return do()
		}), nil, on(&net))
		id := w.save(producer, "a", 0)
		time.Sleep(time.Millisecond)
		w.must(producer.Stop(w.Context()))
		time.Sleep(time.Second)
		w.completed(id, 20*time.Millisecond)
	})
}

func TestARetryAfterAStopIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		hurt := w.engine(w.store, serving{"a": untilEnd(time.Minute, nil)}, on(&net),
			func(c *Config) { c.StopGrace = time.Second })
		time.Sleep(3 * time.Second)
		id := w.save(hurt, "a", 0)
		time.Sleep(time.Second)
		w.engine(w.store, serving{"a": nothing}, on(&net))
		time.Sleep(3 * time.Second)
		w.lossy[hurt] = true
		_ = hurt.Stop(w.Context())
		released := w.row(id)
		time.Sleep(20 * time.Millisecond)
		if after := w.row(id); after.Status != row.Completed {
			t.Errorf("the task was %+v when the process had stopped, and is %+v", released, after)
		}
	})
}

func TestTheCommitOfATransactionIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		s := txStore{w.store}
		producer := w.idle(s, nil, on(&net))
		w.engine(s, serving{"a": nothing}, on(&net))
		time.Sleep(5 * time.Second)
		for _, told := range []bool{false, true} {
			tx := &memTx{}
			id, err := producer.SaveTx(w.Context(), tx, w.task("a", 0))
			w.must(err)
			time.Sleep(50 * time.Millisecond)
			w.must(tx.end(true))
			if told {
				producer.Committed([]int64{id})
			}
			began := time.Now()
			time.Sleep(time.Second)
			most := 70 * time.Millisecond // it is looked for ever less often
			if told {
				most = 5 * time.Millisecond
			}
			if started := w.ran(id, 1)[0].at; started.Sub(began) > most {
				t.Errorf("told %v: committed at %v, started at %v", told, began, started)
			}
		}
	})
}

func TestAResumeReachesAllNodesAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		remote := w.idle(w.store, nil, on(&net))
		w.engine(w.store, serving{"a": nothing}, on(&net))
		time.Sleep(3 * time.Second)
		w.must(remote.Pause(w.Context(), "a", ""))
		time.Sleep(50 * time.Millisecond)
		id := w.save(remote, "a", 0)
		time.Sleep(3 * time.Second)
		w.notStarted(id)
		resumed := time.Now()
		w.must(remote.Resume(w.Context(), "a"))
		time.Sleep(5 * time.Second)
		if late := w.ran(id, 1)[0].at.Sub(resumed); late > 100*time.Millisecond {
			t.Errorf("it started %v after the resume", late)
		}
	})
}

// A poll at one node gets what another one saves, also where its callers pop too.
func TestAPopGetsWhatAnotherNodeSaves(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		a, b := w.engine(w.store, nil, on(&net)), w.engine(w.store, nil, on(&net))
		saver, third := w.idle(w.store, nil, on(&net)), w.engine(w.store, nil, on(&net))
		time.Sleep(3 * time.Second)
		for _, e := range []*Engine{a, third} {
			if _, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true}); err != nil {
				t.Fatal(err)
			}
		}
		for _, by := range []*Engine{a, saver} {
			for _, delay := range shortDelays {
				got := make(chan time.Time, 1)
				go func() {
					tasks, err := b.Pop(w.Context(), lease.PopRequest{Tags: []string{"a"}, Max: 1})
					if err != nil || len(tasks) != 1 {
						t.Error(len(tasks), err)
					}
					got <- time.Now()
				}()
				time.Sleep(2 * time.Second)
				saved := time.Now()
				w.save(by, "a", delay)
				if late := (<-got).Sub(saved) - delay; late > 10*time.Millisecond {
					t.Errorf("delay %v: popped %v late", delay, late)
				}
			}
		}
	})
}

// The node whose timer fires has no caller that waits, and tells the one that has.
func TestAPopGetsWhatIsArmedAtAnotherNode(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		a, b := w.engine(w.store, nil, on(&net)), w.engine(w.store, nil, on(&net))
		time.Sleep(3 * time.Second)
		for _, e := range []*Engine{a, b} {
			if _, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"a"}, Max: 1, Waits: true}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		var saved []time.Time
		for range 10 {
			saved = append(saved, time.Now())
			w.save(a, "a", 5*time.Second)
		}
		time.Sleep(4500 * time.Millisecond)
		for i := range saved {
			w.take(b, "a")
			if late := time.Since(saved[i]) - 5*time.Second; late > 20*time.Millisecond {
				t.Errorf("task %d was popped %v late", i, late)
			}
		}
	})
}

// Two processes see the nodes differently for up to a second. Here the sender knows of no node but the one it tells.
func TestANodeArmsWhatTheSenderMeans(t *testing.T) {
	inBubble(t, func(w *world) {
		producer := w.idle(w.store, nil)
		w.engine(w.store, serving{"a": nothing})
		told := w.engine(w.store, serving{"a": nothing})
		time.Sleep(5*time.Second + 500*time.Millisecond)
		var ids []int64
		for range 20 {
			ids = append(ids, w.save(producer, "a", 100*time.Millisecond))
		}
		now := producer.Now()
		told.find.Hear([]wake.Notice{{Tag: "a", From: now, To: now.Add(time.Second), Share: 0, Of: 1}})
		time.Sleep(5 * time.Second)
		w.allCompleted(ids, 10*time.Millisecond)
	})
}

// lagging shows rows some milliseconds after their save, as another member of a cluster may.
type lagging struct{ store.Store }

func (l lagging) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	page, err := l.Store.Due(ctx, w)
	return slices.DeleteFunc(page, func(d row.Due) bool {
		saved, _, _ := ids.Split(d.ID)
		return time.Since(saved) < 12*time.Millisecond
	}), err
}

func TestAWakeUpMayBeFasterThanTheReplication(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		producer := w.idle(w.store, nil, on(&net))
		w.engine(lagging{w.store}, serving{"a": nothing}, on(&net))
		time.Sleep(5 * time.Second)
		var ids []int64
		for range 20 {
			ids = append(ids, w.save(producer, "a", 0))
			time.Sleep(321 * time.Millisecond)
		}
		time.Sleep(time.Second)
		w.allCompleted(ids, 40*time.Millisecond)
	})
}

func TestRetriesOfManyTasksAreTold(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		operator := w.idle(w.store, nil, on(&net))
		var failing atomic.Bool
		failing.Store(true)
		w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			if failing.Load() {
				return processor.Permanent(errors.New("not yet"))
			}
			return nil
		}}, on(&net))
		ids := w.many(operator, 20, "a", 0)
		time.Sleep(5 * time.Second)
		failing.Store(false)
		if n, _, err := operator.RetryWhere(w.Context(), control.Bulk{}); n != len(ids) || err != nil {
			t.Fatal(n, err)
		}
		time.Sleep(20 * time.Millisecond)
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Completed {
				t.Errorf("task %d is %v", id, r.Status)
			}
		}
	})
}

// The program that inserts rows by plain SQL tells of them.
func TestAWakeFindsRowsOfOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		service := w.idle(w.store, nil, on(&net))
		for range 2 {
			w.engine(w.store, serving{"a": nothing}, on(&net))
		}
		time.Sleep(3 * time.Second)
		var ids []int64
		for i := range 10 {
			ids = append(ids, w.plain(int64(100+i), "a", service.Now()))
		}
		service.Wake([]string{"a"})
		time.Sleep(time.Second)
		w.allCompleted(ids, 10*time.Millisecond)
	})
}

func TestWithoutWakeUpsABusyTagIsReadOften(t *testing.T) {
	inBubble(t, func(w *world) {
		producer := w.idle(w.store, nil)
		w.engine(w.store, serving{"a": nothing})
		w.engine(w.store, serving{"a": nothing})
		time.Sleep(5 * time.Second)
		for range 150 { // the poll of each node begins to find them
			w.save(producer, "a", 0)
			time.Sleep(20 * time.Millisecond)
		}
		var ids []int64
		for i := range 100 {
			ids = append(ids, w.save(producer, "a", shortDelays[i%len(shortDelays)]))
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		w.allCompleted(ids, 40*time.Millisecond)
	})
}

// Rows that are due later wait for a read of their own, however many others come.
func TestABusyTagHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		producer := w.idle(w.store, nil, on(&net))
		w.engine(w.store, serving{"a": nothing, "b": nothing}, on(&net), func(c *Config) { c.Concurrency = 1000 })
		time.Sleep(5 * time.Second)
		var ids []int64
		for i := range 500 {
			ids = append(ids, w.save(producer, "a", 0))
			if i%100 == 50 {
				ids = append(ids, w.save(producer, "b", 100*time.Millisecond))
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		w.allCompleted(ids, 10*time.Millisecond)
	})
}

// Until they know that a node leaves, the others tell it of rows.
func TestANodeThatLeavesStartsWhatItIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		producer := w.idle(w.store, nil, on(&net))
		leaving := w.engine(w.store, serving{"a": nothing}, on(&net))
		w.engine(w.store, serving{"a": nothing}, on(&net))
		time.Sleep(5 * time.Second)
		var ids []int64
		for i := range 400 {
			ids = append(ids, w.save(producer, "a", 0), w.save(producer, "a", 1900*time.Millisecond))
			if i == 200 {
				go func() { w.must(leaving.Stop(w.Context())) }()
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		w.allCompleted(ids, 10*time.Millisecond)
	})
}

// readCounter counts the reads that wake-ups lead to.
type readCounter struct {
	store.Store
	reads atomic.Int32
}

func (s *readCounter) Tags(ctx context.Context) ([]row.TagState, row.Time, error) {
	s.reads.Add(1)
	return s.Store.Tags(ctx)
}

func (s *readCounter) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	s.reads.Add(1)
	return s.Store.Due(ctx, w)
}

func TestForgedWakeUpsLeadToABoundedRateOfReads(t *testing.T) {
	inBubble(t, func(w *world) {
		s := &readCounter{Store: w.store}
		e := w.engine(s, serving{"a": nothing})
		time.Sleep(3 * time.Second)
		before := s.reads.Load()
		for range 10_000 {
			due := wake.Notice{Tag: "a", From: row.MinTime, To: row.MaxTime}
			paused := due
			paused.State = true
			e.find.Hear([]wake.Notice{due, paused})
			time.Sleep(100 * time.Microsecond)
		}
		if reads := s.reads.Load() - before; reads < 300 || reads > 500+20 { // some are of other parts
			t.Errorf("%d reads in a second", reads)
		}
	})
}

func TestASaveWhoseClockHasLostItsAnchorIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		var net air.Network
		producer := w.idle(w.store, nil, on(&net))
		w.engine(w.store, serving{"a": nothing}, on(&net))
		time.Sleep(3 * time.Second)
		id := w.plain(1<<40, "a", producer.Now())
		producer.Bounds.Drop()
		producer.arm.Written(row.Due{ID: id, Tag: "a", Due: w.row(id).Due})
		time.Sleep(time.Second)
		w.allCompleted([]int64{id}, 10*time.Millisecond)
	})
}

// nodesFail is a store whose nodes cannot be read any more.
type nodesFail struct {
	store.Store
	fail  atomic.Bool
	calls atomic.Int32
}

func (s *nodesFail) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	if s.fail.Load() {
		s.calls.Add(1)
		return nil, row.Reading{}, errors.New("the nodes cannot be read")
	}
	return s.Store.Nodes(ctx)
}

func TestNodesThatCannotBeReadAreNotReadAtEverySave(t *testing.T) {
	inBubble(t, func(w *world) {
		s := &nodesFail{Store: w.store}
		producer := w.idle(s, nil, on(new(air.Network)))
		s.fail.Store(true)
		for range 1000 {
			w.save(producer, "a", 0)
			time.Sleep(time.Millisecond)
		}
		if calls := s.calls.Load(); calls > 20 {
			t.Errorf("they were read %d times", calls)
		}
	})
}

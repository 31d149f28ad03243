package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// distant is a store that takes a while to answer what tasks wait for.
type distant struct {
	Store
	roundTrip time.Duration
}

func (s distant) Insert(ctx context.Context, tx Tx, rows []row.Row) error {
	time.Sleep(s.roundTrip)
	return s.Store.Insert(ctx, tx, rows)
}

func (s distant) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	time.Sleep(s.roundTrip)
	return s.Store.Due(ctx, w)
}

func (s distant) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	time.Sleep(s.roundTrip / 2)
	claimed, err := s.Store.Claim(ctx, c)
	time.Sleep(s.roundTrip / 2)
	return claimed, err
}

func (s distant) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	time.Sleep(s.roundTrip)
	return s.Store.Update(ctx, tx, changes)
}

// group is nodes of which any may be replaced.
type group struct {
	w    *world
	join func() *Engine

	mu    sync.Mutex
	nodes []*Engine
	ids   []int64 // of what was saved
}

// save lets one of the nodes save a task.
func (g *group) save(delay time.Duration) {
	g.mu.Lock()
	e := g.nodes[rand.IntN(len(g.nodes))]
	g.mu.Unlock()
	id := g.w.save(e, "a", delay)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids = append(g.ids, id)
}

// grow lets a node join.
func (g *group) grow() {
	e := g.join()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes = append(g.nodes, e)
}

// shrink stops the node that has been there for longest.
func (g *group) shrink() {
	g.mu.Lock()
	old := g.nodes[0]
	g.nodes = g.nodes[1:]
	g.mu.Unlock()
	if err := old.Stop(g.w.Context()); err != nil {
		g.w.Errorf("a node was stopped: %v", err)
	}
}

// latenesses checks that each task ran once and burned no attempt, and returns how late they were, the least first.
func (w *world) latenesses(ids []int64) []time.Duration {
	w.Helper()
	late := make([]time.Duration, len(ids))
	for i, id := range ids {
		late[i] = w.once(id)
		if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 || r.CrashCount != 0 {
			w.Errorf("task %d is %v after attempt %d and %d crashes", id, r.Status, r.Attempt, r.CrashCount)
		}
	}
	slices.Sort(late)
	return late
}

func TestRollingRestartMakesNothingLate(t *testing.T) {
	inBubble(t, func(w *world) {
		g := &group{w: w, join: func() *Engine {
			return w.engine(distant{w.store, 2 * time.Millisecond}, map[string]processor.Func{"a": nothing})
		}}
		for range 3 {
			g.grow()
		}
		time.Sleep(3 * time.Second)
		var saves sync.WaitGroup
		for i := range 10_000 { // 1,000 a second
			saves.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				g.save(200*time.Millisecond + rand.N(5*time.Second))
			})
		}
		for range 3 {
			time.Sleep(2 * time.Second)
			g.shrink()
			g.grow()
		}
		saves.Wait()
		time.Sleep(20 * time.Second)
		late := w.latenesses(g.ids)
		if p99 := late[len(late)*99/100]; p99 > 20*time.Millisecond {
			w.Errorf("99 of 100 tasks were at most %v late, all %v", p99, late[len(late)-1])
		}

	})
}

func TestLeavingNodeGoesOnOnlyWhileOthersTakeOver(t *testing.T) {
	for name, c := range map[string]struct {
		others bool          // serve the tag too
		due    time.Duration // of a task that the node has armed
		least  time.Duration // the stop takes
		most   time.Duration
	}{
		"NobodyTakesOver":  {false, 500 * time.Millisecond, 0, 100 * time.Millisecond},
		"NothingIsDueSoon": {true, time.Minute, 0, 100 * time.Millisecond},
		"SomethingIsDue":   {true, 500 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond},
		"ItIsDueForOthers": {true, 3 * time.Second, 0, 2100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				e := w.engine(w.store, map[string]processor.Func{"a": nothing})
				if c.others {
					w.engine(w.store, map[string]processor.Func{"a": nothing})
				}
				time.Sleep(3 * time.Second)
				var ids []int64
				for range 20 {
					ids = append(ids, w.save(e, "a", c.due))
				}
				began := time.Now()
				if err := e.Stop(w.Context()); err != nil {
					w.Fatal(err)
				}
				if took := time.Since(began); took < c.least || took > c.most {
					w.Errorf("the stop took %v, want %v to %v", took, c.least, c.most)
				}
				if !c.others {
					return
				}
				time.Sleep(2 * time.Minute)
				for _, id := range ids {
					w.completed(id, 5*time.Millisecond)
				}
			})
		})
	}
}

package engine

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

func TestRollingRestartMakesNothingLate(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		var nodes []*Engine
		var ids []int64
		grow := func() {
			e := w.engine(distant(w.store, 2*time.Millisecond), serving{"a": nothing})
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, e)
		}
		shrink := func() { // the node stops that has been there for longest
			mu.Lock()
			old := nodes[0]
			nodes = nodes[1:]
			mu.Unlock()
			w.must(old.Stop(w.Context()))
		}
		save := func() { // by one of the nodes
			mu.Lock()
			e := nodes[rand.IntN(len(nodes))]
			mu.Unlock()
			id := w.save(e, "a", 200*time.Millisecond+rand.N(5*time.Second))
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, id)
		}
		for range 3 {
			grow()
		}
		time.Sleep(3 * time.Second)
		var saves sync.WaitGroup
		for i := range 10_000 { // 1,000 a second
			saves.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				save()
			})
		}
		for range 3 {
			time.Sleep(2 * time.Second)
			shrink()
			grow()
		}
		saves.Wait()
		time.Sleep(20 * time.Second)
		late := make([]time.Duration, len(ids))
		for i, id := range ids {
			late[i] = w.once(id)
		}
		w.standing(row.Completed, 1, 0, ids...)
		slices.Sort(late)
		if p99 := late[len(late)*99/100]; p99 > 20*time.Millisecond {
			w.Errorf("99 of 100 tasks were at most %v late, all %v", p99, late[len(late)-1])
		}
	})
}

func TestLeavingNodeGoesOnOnlyWhileOthersTakeOver(t *testing.T) {
	type stop struct {
		others bool          // serve the tag too
		due    time.Duration // of a task that the node has armed
		least  time.Duration // the stop takes
		most   time.Duration
	}
	inBubbles(t, map[string]stop{
		"NobodyTakesOver":  {false, 500 * time.Millisecond, 0, 100 * time.Millisecond},
		"NothingIsDueSoon": {true, time.Minute, 0, 100 * time.Millisecond},
		"SomethingIsDue":   {true, 500 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond},
		"ItIsDueForOthers": {true, 3 * time.Second, 0, 2100 * time.Millisecond},
	}, func(w *world, c stop) {
		e := w.engine(w.store, serving{"a": nothing})
		if c.others {
			w.engine(w.store, serving{"a": nothing})
		}
		time.Sleep(3 * time.Second)
		ids := w.many(e, 20, "a", c.due)
		began := time.Now()
		w.must(e.Stop(w.Context()))
		if took := time.Since(began); took < c.least || took > c.most {
			w.Errorf("the stop took %v, want %v to %v", took, c.least, c.most)
		}
		if c.others {
			time.Sleep(2 * time.Minute)
			w.allCompleted(ids, 5*time.Millisecond)
		}
	})
}

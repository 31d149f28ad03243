package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// laned has connections for each kind of write, and some for writes that are sent apart, as the real store has.
func laned(s store.Store) store.Store {
	lanes := map[string]chan struct{}{"Apart": make(chan struct{}, 4)}
	for call, n := range map[string]int{"Insert": 3, "Claim": 3, "Update": 2, "Renew": 2} {
		lanes[call] = make(chan struct{}, n)
	}
	return around{s, func(ctx context.Context, call string, do func() error) error {
		lane := lanes[call]
		if lane != nil && store.IsApart(ctx) {
			lane = lanes["Apart"]
		}
		if lane != nil {
			select {
			case lane <- struct{}{}:
				defer func() { <-lane }()
			case <-ctx.Done():
				return classError(row.ClassNotApplied, "no connection was free")
			}
		}
		return do()
	}}
}

// Another transaction has searched rows of one tag. No row is locked, but none can be put where it has searched.
func TestALockedRangeHoldsUpNoOtherTag(t *testing.T) {
	const tags, hold, wait = 10, 8 * time.Second, time.Second
	covers := func(of ...row.Status) func(string, row.Status) bool {
		return func(tag string, status row.Status) bool { return tag == "t0" && slices.Contains(of, status) }
	}
	inBubbles(t, map[string]func(string, row.Status) bool{
		"Pending":        covers(row.Pending),
		"Executing":      covers(row.Executing),
		"Completed":      covers(row.Completed),
		"AllOfTheTag":    covers(row.Pending, row.Executing, row.Completed, row.Failed, row.Cancelled),
		"OneTagBesideIt": func(tag string, _ row.Status) bool { return tag == "t0" || tag == "t1" },
	}, func(w *world, covers func(string, row.Status) bool) {
		serves := serving{}
		for i := range tags {
			serves[fmt.Sprint("t", i)] = untilEnd(10*time.Millisecond, nil)
		}
		serves["t9"] = untilEnd(6*time.Second, nil) // whose leases are renewed
		e := w.engine(laned(w.store), serves)
		time.Sleep(3 * time.Second)
		unlock := w.store.LockRange(covers)
		began := time.Now()
		type task struct {
			id    int64
			saved time.Time
		}
		free := func(tag string) bool { return !covers(tag, row.Completed) || tag != "t0" && tag != "t1" }
		var mu sync.Mutex
		var others []task
		for i := 0; time.Since(began) < hold; i++ {
			tag := fmt.Sprint("t", i%tags)
			opts := []delaytask.Option{delaytask.WithTTR(2 * time.Second)}
			if i%3 == 0 {
				opts = append(opts, delaytask.WithKey(fmt.Sprint("key", i)))
			}
			go func() {
				at := time.Now()
				id, _, err := e.Save(w.Context(), w.task(tag, 50*time.Millisecond, opts...))
				w.must(err)
				took := time.Since(at)
				if !free(tag) || covers(tag, row.Pending) {
					return
				}
				if most := wait + 50*time.Millisecond; took > most || at.Sub(began) > 3*wait && took > most/20 {
					w.Errorf("a save of %s took %v, %v after the lock", tag, took, at.Sub(began))
				}
				if tag != "t9" {
					mu.Lock()
					defer mu.Unlock()
					others = append(others, task{id, at.Add(took)})
				}
			}()
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		for _, o := range others {
			r := w.row(o.id)
			if tag := r.Tag; covers(tag, row.Executing) || covers(tag, row.Completed) {
				continue
			}
			if r.Status != row.Completed {
				w.Errorf("task of %s, saved %v after the lock: %v", r.Tag, o.saved.Sub(began), r.Status)
				continue
			}
			most := 2*wait + 200*time.Millisecond
			if o.saved.Sub(began) > 3*wait {
				most = 150 * time.Millisecond
			}
			if took := r.Finish().Sub(r.Expected); took > most {
				w.Errorf("task of %s, saved %v after the lock, is stored %v late", r.Tag, o.saved.Sub(began), took)
			}
		}
		unlock()
		time.Sleep(30 * time.Second)
		for _, r := range w.store.All() {
			if r.Status != row.Completed || r.CrashCount > 0 {
				w.Errorf("after the lock: %v, %d crashes, tag %s", r.Status, r.CrashCount, r.Tag)
			}
		}
	})
}

// On a slow disk each commit takes a second. That is no lock: no tag travels apart, and rows gather for the next
// statement of their kind.
func TestASlowDiskKeepsNoTagApart(t *testing.T) {
	inBubble(t, func(w *world) {
		const tags, hold = 10, 20 * time.Second
		serves := serving{}
		for i := range tags {
			serves[fmt.Sprint("t", i)] = nothing
		}
		serves["t9"] = untilEnd(12*time.Second, nil) // whose leases are renewed
		var slow atomic.Bool
		var claims atomic.Int32
		lanes := laned(around{w.store, func(ctx context.Context, call string, do func() error) error {
			switch writes := []string{"Insert", "Claim", "Update", "Renew"}; {
			case !slow.Load() || !slices.Contains(writes, call):
			case store.IsApart(ctx):
				w.Errorf("%s travels apart", call)
			default:
				time.Sleep(time.Second)
			}
			return do()
		}})
		e := w.engine(at(lanes, "Claim", func(_ context.Context, do func() error) error {
			if n := claims.Add(1); n > 3 {
				w.Errorf("%d claims wait for three connections", n)
			}
			defer claims.Add(-1)
			return do()
		}), serves, func(c *Config) { c.Concurrency = 600 })
		time.Sleep(3 * time.Second)
		slow.Store(true)
		for i, began := 0, time.Now(); time.Since(began) < hold; i++ {
			go func() {
				_, _, err := e.Save(w.Context(), w.task(fmt.Sprint("t", i%tags), 2*time.Second,
					delaytask.WithTTR(8*time.Second)))
				w.must(err)
			}()
			time.Sleep(25 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		slow.Store(false)
		time.Sleep(20 * time.Second)
		for _, r := range w.store.All() {
			if late := r.Execution.Sub(r.Expected); r.Status != row.Completed || r.Version > 2 || late > 4*time.Second {
				w.Errorf("%s: %v after %d changes, begun %v late", r.Tag, r.Status, r.Version, late)
			}
		}
	})
}

// A locked range grows to the next tag each time that the row at its end goes away.
func TestALockedRangeThatGrowsHoldsUpNoTagBehindIt(t *testing.T) {
	const tags, covered, grows, wait = 10, 5, 2 * time.Second, time.Second
	inBubbles(t, map[string]row.Status{"Pending": row.Pending, "Executing": row.Executing, "Completed": row.Completed},
		func(w *world, locked row.Status) {
			serves := serving{}
			for i := range tags {
				serves[fmt.Sprint("t", i)] = untilEnd(10*time.Millisecond, nil)
			}
			e := w.engine(laned(w.store), serves)
			time.Sleep(3 * time.Second)
			began := time.Now()
			unlock := w.store.LockRange(func(tag string, to row.Status) bool {
				return to == locked && tag <= fmt.Sprint("t", int(time.Since(began)/grows))
			})
			saved := map[int64]time.Duration{}
			var mu sync.Mutex
			for i := 0; time.Since(began) < covered*grows; i++ {
				at := time.Since(began)
				go func() {
					id, _, err := e.Save(w.Context(), w.task(fmt.Sprint("t", i%tags), 50*time.Millisecond))
					w.must(err)
					mu.Lock()
					defer mu.Unlock()
					saved[id] = at
				}()
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(200 * time.Millisecond)
			for _, r := range w.store.All() {
				mu.Lock()
				at := saved[r.ID]
				mu.Unlock()
				took := r.Finish().Sub(r.Created)
				late := r.Status != row.Completed || took > 200*time.Millisecond
				if r.Tag >= fmt.Sprint("t", covered) && at > 3*wait && late {
					w.Errorf("task of %s, saved %v after the lock: %v, %v after that", r.Tag, at, r.Status, took)
				}
			}
			unlock()
			time.Sleep(30 * time.Second)
		})
}

// The runs of one tag cannot be planted. Ten schedules of others tick every second.
func TestALockedRangeHoldsUpNoOtherSchedule(t *testing.T) {
	inBubble(t, func(w *world) {
		serves := serving{}
		for i := range 10 {
			serves[fmt.Sprint("t", i)] = nothing
		}
		e := w.engine(laned(w.store), serves)
		for i := range 10 {
			w.scheduleOf(fmt.Sprint("t", i), e, fmt.Sprint("s", i), "@every 1s")
		}
		time.Sleep(15 * time.Second)
		unlock := w.store.LockRange(func(tag string, to row.Status) bool { return tag == "t0" && to == row.Pending })
		time.Sleep(20 * time.Second)
		unlock()
		for i := 1; i < 10; i++ {
			if n := w.done(fmt.Sprint("t", i)); n < 33 {
				w.Errorf("%d runs of t%d within 35 s", n, i)
			}
		}
	})
}

// The leases of two tags cannot be moved. Tasks of a third hold leases that are as short, and are renewed with them.
func TestALockedRangeCostsNoOtherTagItsLease(t *testing.T) {
	inBubblesOf(t, []time.Duration{2 * time.Second, 5 * time.Second}, func(w *world, ttr time.Duration) {
		serves := serving{"kept": untilEnd(40*time.Second, nil)}
		for i := range 2 {
			serves[fmt.Sprint("t", i)] = untilEnd(40*time.Second, nil)
		}
		var waited atomic.Int32
		e := w.engine(at(laned(w.store), "Renew", func(ctx context.Context, do func() error) error {
			began := time.Now()
			err := do()
			if time.Since(began) >= time.Second && !store.IsApart(ctx) {
				waited.Add(1)
			}
			return err
		}), serves)
		w.lossy[e] = true      // leases of covered tags are lost
		w.engine(w.store, nil) // would rescue
		time.Sleep(3 * time.Second)
		kept := w.saveMany(e, "kept", 5, delaytask.WithTTR(ttr))
		for i := range 2 {
			w.saveMany(e, fmt.Sprint("t", i), 5, delaytask.WithTTR(ttr))
		}
		time.Sleep(100 * time.Millisecond)
		unlock := w.store.LockRange(func(tag string, to row.Status) bool {
			return tag != "kept" && to == row.Executing
		})
		time.Sleep(20 * time.Second)
		unlock()
		time.Sleep(25 * time.Second)
		w.allCompleted(kept, time.Second)
		if n := waited.Load(); n > 1 {
			w.Errorf("%d renewals that do not travel apart have waited for the lock", n)
		}
	})
}

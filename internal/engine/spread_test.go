package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// counted is a store as one node sees it, and what its claims asked for and got.
type counted struct {
	claimHook
	asked, won atomic.Int64
}

// spread starts nodes with a store each.
func (w *world) spread(nodes int, f processor.Func) []*counted {
	w.Helper()
	return w.spreadFar(nodes, 3*time.Millisecond, f)
}

func (w *world) spreadFar(nodes int, away time.Duration, f processor.Func) []*counted {
	w.Helper()
	stores := make([]*counted, nodes)
	for i := range stores {
		s, far := &counted{}, distant(w.store, away)
		s.claimHook = claimHook{far, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			claimed, err := far.Claim(ctx, c)
			s.asked.Add(int64(len(c.Rows)))
			s.won.Add(int64(len(claimed.Rows)))
			return claimed, err
		}}
		stores[i] = s
		w.engine(s, serving{"a": f})
	}
	return stores
}

// shared checks that all nodes had about the same part of the work, and that few claims were in vain.
func (w *world) shared(stores []*counted, tasks int) {
	w.Helper()
	var asked, won int64
	share := float64(tasks) / float64(len(stores))
	for i, s := range stores {
		asked += s.asked.Load()
		won += s.won.Load()
		if got := float64(s.won.Load()); got < 0.8*share || got > 1.2*share {
			w.Errorf("node %d has run %.0f tasks, its share is %.0f", i, got, share)
		}
	}
	if won != int64(tasks) {
		w.Errorf("%d claims were won, want one for each of %d tasks", won, tasks)
	}
	if wasted := asked - won; wasted > asked/20 {
		w.Errorf("%d of %d claims were in vain", wasted, asked)
	}
}

// Each of them knows at first only those that were there before.
func TestNodesThatStartTogetherShareABacklog(t *testing.T) {
	inBubblesOf(t, peerCounts, func(w *world, nodes int) {
		tasks := 4000 * nodes
		w.backlog(tasks, "a", row.At(time.Now().Add(-time.Minute)))
		stores := w.spread(nodes, untilEnd(10*time.Millisecond, nil))
		time.Sleep(30 * time.Second)
		w.shared(stores, tasks)
	})
}

// A deploy starts one after the other, and each knows at first only the ones before it.
func TestManyNodesThatStartTogetherClaimLittleInVain(t *testing.T) {
	inBubble(t, func(w *world) {
		const nodes, tasks = 40, 4000
		w.backlog(tasks, "a", row.At(time.Now().Add(-time.Minute)))
		stores := w.spread(nodes, untilEnd(10*time.Millisecond, nil))
		time.Sleep(3 * time.Second)
		if n := w.done("a"); n != tasks {
			w.Errorf("%d of %d tasks were run", n, tasks)
		}
		var asked, won int64
		for _, s := range stores {
			asked += s.asked.Load()
			won += s.won.Load()
		}
		if vain := asked - won; vain > asked/4 {
			w.Errorf("%d of %d claims were in vain", vain, asked)
		}
	})
}

// viewOf is how the first of the nodes sees all of them.
func viewOf(tag string, tokens ...string) *cluster.View {
	now := row.At(time.Now())
	nodes := make([]row.Node, len(tokens))
	for i, token := range tokens {
		nodes[i] = row.Node{Number: i + 1, Token: token, Tags: []string{tag}, Heartbeat: now}
	}
	return cluster.NewView(tokens[0], nodes, now, cluster.Rule{Alive: time.Minute})
}

// A page that was read before the others were known waits for room, and may get it because rows of theirs were given
// away.
func TestWhatWaitsForRoomIsRedistributedAsWell(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, serving{"a": nothing})
		const page = backlogPerTag / 3
		e.readPaused(w.Context())
		e.arm.Tags.Run(true)
		both := viewOf("a", "this", "other")
		e.arm.Look(viewOf("a", "this"))
		e.runqueue.AddDue(sightings("a", 1, backlogPerTag), true, row.At(time.Now()))
		offered := make(chan error)
		go func() { offered <- e.find.Passes.Offer(w.Context(), "a", sightings("a", 10_001, page)) }()
		synctest.Wait()
		e.arm.Look(both)
		e.runqueue.Redistribute(e.arm.Shared)
		w.must(<-offered)
		if n := e.runqueue.Counts().Waiting; n < backlogPerTag/2 || n > backlogPerTag {
			w.Errorf("%d rows wait, want about half of %d", n, backlogPerTag+page)
		}
		pick := func() []*runqueue.Item { return e.runqueue.Pick(runqueue.MaxClaim, 0, true) }
		for picked := pick(); len(picked) > 0; picked = pick() {
			for _, it := range picked {
				if both.TurnOfAny(it.ID, "a") != 0 {
					w.Fatalf("row %d of the other node waits", it.ID)
				}
				e.runqueue.Release(it, runqueue.Ended)
			}
		}
	})
}

// Most of the rows grow overdue while the first of them run. A node that has come to the end of what was overdue before
// must not leave its own to the others.
func TestNodesGoOnWithWhatGrowsOverdue(t *testing.T) {
	inBubble(t, func(w *world) {
		const nodes, tasks = 3, 9000
		due := row.At(time.Now().Add(-1200 * time.Millisecond))
		for i := range int64(tasks) {
			w.plain(1000+i, "a", due.Add(time.Duration(i)*130*time.Microsecond))
		}
		w.spread(nodes, nothing)
		time.Sleep(runqueue.Overdue / 2)
		if done := w.done("a"); done < tasks {
			w.Errorf("%d of %d tasks are done", done, tasks)
		}
	})
}

// TestSuccessorsTakeWhatANodeDoesNotBegin has a node that lives and gets no answers to its claims. One other takes each
// of its tasks, and not all of them at once.
func TestSuccessorsTakeWhatANodeDoesNotBegin(t *testing.T) {
	inBubble(t, func(w *world) {
		const nodes, tasks, away = 10, 1000, 25 * time.Millisecond
		unanswered := func(ctx context.Context, _ row.Claim) (row.Claimed, error) {
			<-ctx.Done()
			return row.Claimed{}, ctx.Err()
		}
		stuck := &claimHook{distant(w.store, away), unanswered}
		w.engine(stuck, serving{"a": nothing})
		stores := w.spreadFar(nodes-1, away, nothing)
		time.Sleep(7 * time.Second)
		begin := row.At(time.Now().Add(3 * time.Second))
		for i := range int64(tasks) {
			w.plain(1000+i, "a", begin.Add(time.Duration(i)*time.Millisecond))
		}
		time.Sleep(3*time.Second + tasks*time.Millisecond + 700*time.Millisecond)
		if done := w.done("a"); done < tasks {
			w.Errorf("%d of %d tasks are done", done, tasks)
		}
		var asked, won int64
		for _, s := range stores {
			asked += s.asked.Load()
			won += s.won.Load()
		}
		if won != tasks || asked > tasks+tasks/100 {
			w.Errorf("%d claims were asked for and %d won, for %d tasks", asked, won, tasks)
		}
	})
}

func TestNodesShareWhatFallsDue(t *testing.T) {
	inBubblesOf(t, peerCounts, func(w *world, nodes int) {
		const tasks = 10_000
		stores := w.spread(nodes, nothing)
		time.Sleep(7 * time.Second)
		begin := row.At(time.Now().Add(3 * time.Second))
		for i := range int64(tasks) { // 2,000 a second
			w.plain(1000+i, "a", begin.Add(time.Duration(i)*500*time.Microsecond))
		}
		time.Sleep(30 * time.Second)
		w.shared(stores, tasks)
	})
}

// sightings makes n rows of a tag, ids from first on, due one microsecond after the other.
func sightings(tag string, first int64, n int) []row.Due {
	ds := make([]row.Due, n)
	for i := range ds {
		ds[i] = row.Due{ID: first + int64(i), Tag: tag, Due: row.Time(first + int64(i))}
	}
	return ds
}

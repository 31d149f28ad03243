package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// suspectsOf puts rows into the lines that have lost so many executors each, with ids from 1 on.
func suspectsOf(workers int, crashes ...int) *hands {
	h := handsFor(workers, workers, "a")
	for i, n := range crashes {
		h.due([]row.Due{{ID: int64(i + 1), Tag: "a", Due: 1, CrashCount: n}}, false, 0)
	}
	return h
}

func repeat(crashes, times int) []int { return slices.Repeat([]int{crashes}, times) }

func TestSuspectThatNoCrashCountsAgainstLetsTheNextOneRun(t *testing.T) {
	for name, step := range map[string]func(h *hands, it *item){
		"it was not claimed":                  (*hands).standBack,
		"it goes back to its line":            (*hands).putBack,
		"it is in the hand of a token holder": func(h *hands, it *item) { h.handOut(it, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			h := handsFor(10, 10, "a")
			h.due([]row.Due{{ID: 1, Tag: "a", Due: 1, CrashCount: 2}, {ID: 2, Tag: "a", Due: 1, CrashCount: 2}}, false, 0)
			first := h.pickAny(claimRows, 0)
			step(h, first[0])
			if got := h.pickAny(claimRows, 0); len(first) != 1 || !slices.Equal(idsIn(got), []int64{2}) {
				t.Errorf("picked %v, then %v", idsIn(first), idsIn(got))
			}
		})
	}
}

func TestSuspectsLeaveASingleWorkerToOthers(t *testing.T) {
	h := handsFor(1, 1, "a")
	for i := range 100 {
		h.due([]row.Due{{ID: int64(i + 1), Tag: "a", Due: 1, CrashCount: 2}, {ID: int64(i + 1001), Tag: "a", Due: 1}}, false, 0)
	}
	others := 0
	for range 40 {
		for _, it := range h.pickAny(claimRows, 0) {
			if it.ID > 1000 {
				others++
			}
			h.letGo(it)
		}
	}
	if others < 20 {
		t.Errorf("of 40 slots %d went to rows that never crashed", others)
	}
}

// wave takes what may run together and lets it come to its end.
func (h *hands) wave() (ids []int64) {
	picked := h.pickAny(claimRows, 0)
	for _, it := range picked {
		h.settled(it, true)
	}
	return idsIn(picked)
}

func TestSuspectsThatSurviveLetMoreRunTogether(t *testing.T) {
	h := suspectsOf(20, repeat(2, 40)...)
	var waves []int
	for ids := h.wave(); len(ids) > 0; ids = h.wave() {
		waves = append(waves, len(ids))
	}
	if !slices.Equal(waves, []int{1, 2, 4, 8, 10, 10, 5}) {
		t.Errorf("waves of %v suspects, want twice as many each time, up to half of the workers", waves)
	}
}

func TestSuspectsThatFailAndAreTriedAgainVouchForNone(t *testing.T) {
	inBubble(t, func(w *world) {
		w.suspects(20)
		running := 0
		w.engine(w.store, serving{"a": func(ctx context.Context, task *processor.Task) error {
			if running++; running > 1 {
				w.Errorf("task %d runs beside another suspect", task.ID)
			}
			lifecycle.Sleep(ctx, 100*time.Millisecond)
			running--
			return errors.New("boom")
		}})
		time.Sleep(10 * time.Second)
	})
}

func TestWhoHasLostThreeRunsAlone(t *testing.T) {
	h := suspectsOf(20, repeat(2, 7)...)
	h.wave()
	h.wave()
	beside := h.pickAny(claimRows, 0) // the other four
	h.due([]row.Due{{ID: 8, Tag: "a", Due: 1, CrashCount: 3}, {ID: 9, Tag: "a", Due: 1, CrashCount: 4}}, false, 0)
	for _, it := range beside {
		if got := h.pickAny(claimRows, 0); len(got) != 0 {
			t.Fatalf("picked %v beside %v", idsIn(got), it.ID)
		}
		h.settled(it, true)
	}
	for _, want := range []int64{8, 9} {
		alone := h.pickAny(claimRows, 0)
		if got := h.pickAny(claimRows, 0); !slices.Equal(idsIn(alone), []int64{want}) || len(got) != 0 {
			t.Fatalf("picked %v and then %v, want %d alone", idsIn(alone), idsIn(got), want)
		}
		h.settled(alone[0], true)
	}
}

func TestWhoseNextLossIsTheLastRunsAlone(t *testing.T) {
	h := newHands(20, 3, limits{heap: 10, backlog: 10})
	h.serve("a", true, 20)
	for id := range int64(4) {
		h.due([]row.Due{{ID: id + 1, Tag: "a", Due: 1, CrashCount: 2}}, false, 0)
	}
	for range 4 {
		if ids := h.wave(); len(ids) != 1 {
			t.Errorf("picked %v together", ids)
		}
	}
}

func TestSuspectsTakeTurns(t *testing.T) {
	h := suspectsOf(8, append(repeat(2, 30), repeat(3, 3)...)...)
	var lone []int
	for n := 0; ; n++ {
		ids := h.wave()
		if len(ids) == 0 {
			break
		}
		if len(ids) == 1 && ids[0] > 30 {
			lone = append(lone, n)
		}
	}
	if !slices.Equal(lone, []int{1, 3, 5}) {
		t.Errorf("those that run alone had the turns %v, want every other one", lone)
	}
}

// suspect plants an overdue task that has lost so many executors.
func (w *world) suspect(id int64, tag string, crashes int, ttr time.Duration) {
	due := row.At(time.Now().Add(-time.Minute)) + row.Time(id)
	w.store.Plant(row.Row{ID: id, Tag: tag, Body: []byte("{}"), Due: due, Expected: due, CrashCount: crashes, TTR: ttr})
}

// suspects plants n of them, with ids from 1 on, that have lost two.
func (w *world) suspects(n int64) {
	for id := range n {
		w.suspect(1+id, "a", suspectAt, 2*time.Second)
	}
}

// An outage that has come twice leaves many tasks under suspicion. One by one they would take 10 minutes.
func TestManySuspectsAreSoonThrough(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 600
		w.suspects(tasks)
		w.engine(w.store, serving{"a": untilEnd(time.Second, nil)})
		time.Sleep(30 * time.Second)
		if done := w.done("a"); done < tasks {
			w.Errorf("%d of %d tasks are done", done, tasks)
		}
	})
}

// The poison kills one process after the other, and meets suspects that have got many slots by then. It costs them one more loss, and
// no other.
func TestPoisonAmongManySuspectsIsQuarantinedAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks, poison = 300, 100
		w.suspects(tasks)
		kill, stop := make(chan struct{}, 10), make(chan struct{})
		defer close(stop)
		processors := serving{"a": func(ctx context.Context, task *processor.Task) error {
			if task.ID == poison {
				kill <- struct{}{}
				<-stop
			}
			lifecycle.Sleep(ctx, 100*time.Millisecond)
			return nil
		}}
		for range 3 {
			e := w.engine(w.store, processors)
			<-kill
			w.crash(e)
		}
		w.engine(w.store, processors)
		time.Sleep(time.Minute)
		if r := w.row(poison); r.Status != row.Failed || r.CrashCount != 5 {
			w.Errorf("the poison: %v, %d crashes", r.Status, r.CrashCount)
		}
		hit := 0
		for id := int64(1); id <= tasks; id++ {
			if r := w.row(id); id != poison && (r.Status != row.Completed || r.CrashCount > loneAt) {
				w.Errorf("task %d: %v, %d crashes", id, r.Status, r.CrashCount)
			} else if id != poison && r.CrashCount == loneAt {
				hit++
			}
		}
		if hit == 0 {
			w.Error("the poison has met none")
		}
	})
}

// A crash counts no more against a task that is completed in a transaction, or whose hand-over waits for a lock.
func TestSuspectThatNoCrashCanHitHoldsUpNoOther(t *testing.T) {
	var unlock func()
	inBubbles(t, map[string]func(*world) processor.Func{
		"CompletedInATransaction": func(w *world) processor.Func {
			unlock = func() {}
			return func(ctx context.Context, _ *processor.Task) error {
				tx := &memTx{}
				w.must(errors.Join(processor.CompleteTx(ctx, tx), tx.end(true)))
				lifecycle.Sleep(ctx, 30*time.Second)
				return nil
			}
		},
		"HandOverThatWaits": func(w *world) processor.Func {
			return func(context.Context, *processor.Task) error {
				unlock = w.store.Lock(1)
				return processor.HandOver(time.Minute)
			}
		},
	}, func(w *world, busy func(*world) processor.Func) {
		w.suspect(1, "busy", loneAt, time.Minute)
		w.engine(txStore{w.store}, serving{"a": nothing, "busy": busy(w)})
		time.Sleep(6 * time.Second)
		w.suspect(2, "a", loneAt, time.Minute)
		time.Sleep(7 * time.Second)
		w.standing(row.Completed, 1, loneAt, 2)
		unlock()
		time.Sleep(30 * time.Second)
		if r := w.row(1); r.Status != row.Completed && !row.Popped(r.Executor) {
			w.Errorf("row: %+v", r)
		}
	})
}

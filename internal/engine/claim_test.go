package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/row"
)

func TestTasksDueTogetherAreClaimedTogetherAndStartOnTheirOwnMillisecond(t *testing.T) {
	inBubble(t, func(w *world) {
		var sizes []int
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			sizes = append(sizes, len(c.Rows))
			return w.store.Claim(ctx, c)
		}}, serving{"a": nothing})
		time.Sleep(time.Second)
		at := time.Now().Add(5 * time.Second)
		var ids []int64
		for i := range 20 {
			ids = append(ids, w.save(e, "a", 0, delaytask.WithTime(at.Add(time.Duration(i)*time.Millisecond))))
		}
		time.Sleep(10 * time.Second)
		for i, id := range ids {
			w.completed(id, time.Millisecond)
			if got := w.runs.of(id)[0].at.Sub(at); got < time.Duration(i)*time.Millisecond {
				w.Errorf("task %d started %v after the first was due", i, got)
			}
		}
		if len(sizes) > 3 {
			w.Errorf("%d claims for 20 tasks due within 20 ms: %v", len(sizes), sizes)
		}
	})
}

func TestSlowClaimIsSentEarlier(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(slow(w.store, "Claim", 10*time.Millisecond), serving{"a": nothing})
		w.save(e, "a", 0) // from here on the round trip is known
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(5 * time.Second)
		w.completed(id, 2*time.Millisecond)
	})
}

// Two claims wait, as for locks of which nothing tells. What is due meanwhile is claimed by a third.
func TestAClaimThatIsSilentMakesRoom(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		waits := map[int64]bool{}
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			mu.Lock()
			waiting := slices.ContainsFunc(c.Rows, func(r row.Ref) bool { return waits[r.ID] })
			mu.Unlock()
			if waiting {
				time.Sleep(900 * time.Millisecond)
			}
			return w.store.Claim(ctx, c)
		}}, serving{"a": nothing})
		w.save(e, "a", 0) // from here on the round trip is known
		time.Sleep(time.Second)
		for n := range 2 {
			id := w.save(e, "a", 5*time.Second+time.Duration(n)*100*time.Millisecond)
			mu.Lock()
			waits[id] = true
			mu.Unlock()
		}
		id := w.save(e, "a", 5450*time.Millisecond)
		time.Sleep(10 * time.Second)
		w.completed(id, 2*time.Millisecond)
	})
}

// A row that another transaction holds tells nothing about the database, and costs one claim its wait.
func TestLockedRowInAClaimBatchHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		var waited atomic.Int64
		e := w.engine(at(w.store, "Claim", func(_ context.Context, do func() error) error {
			err := do()
			if err != nil {
				waited.Add(1)
			}
			return err
		}), serving{"a": nothing, "b": nothing})
		healthy := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				w.must(e.Ready(w.Context()))
				_, err := e.Pop(w.Context(), lease.PopRequest{Tags: []string{"popped"}, Max: 1, Waits: true})
				w.must(err)
			}
		}
		time.Sleep(time.Second)
		at := delaytask.WithTime(time.Now().Add(2500 * time.Millisecond))
		locked := w.save(e, "a", 0, at)
		unlock := w.store.Lock(locked)
		same := w.saveMany(e, "a", 10, at)
		healthy(5 * time.Second)
		w.allCompleted(same, 1100*time.Millisecond)
		var later []int64
		for range 40 {
			later = append(later, w.save(e, "a", 300*time.Millisecond), w.save(e, "b", 0))
			healthy(time.Second)
		}
		w.allCompleted(later, 5*time.Millisecond)
		if n := waited.Load(); n > 2 {
			w.Errorf("%d claims waited for the lock, want one", n)
		}
		began := time.Now()
		unlock()
		time.Sleep(10 * time.Second)
		if got := w.ran(locked, 1); got[0].at.Sub(began) > 6*time.Second {
			w.Errorf("the row that was locked: %v", got)
		}
	})
}

func TestClaimWithALostReply(t *testing.T) {
	type reply struct {
		apply time.Duration // after the call; negative: never
		late  time.Duration // how late the task may start
	}
	inBubbles(t, map[string]reply{
		"AppliedAtOnce": {0, 100 * time.Millisecond},
		"AppliedLate":   {300 * time.Millisecond, 1200 * time.Millisecond},
		"NeverApplied":  {-1, 30 * time.Second},
	}, func(w *world, c reply) {
		calls := 0
		e := w.engine(claimHook{w.store, func(ctx context.Context, claim row.Claim) (row.Claimed, error) {
			if calls++; calls > 1 {
				return w.store.Claim(ctx, claim)
			}
			if c.apply >= 0 {
				time.AfterFunc(c.apply, func() {
					if _, err := w.store.Claim(context.Background(), claim); err != nil {
						w.Error(err)
					}
				})
				time.Sleep(time.Nanosecond)
			}
			return row.Claimed{}, classError(row.ClassUnknown, "the reply is lost")
		}}, serving{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(time.Minute)
		w.completed(id, c.late)
	})
}

// A lost reply may be one about hundreds of rows. Their release takes a few statements, and one row that cannot be
// released holds up no other.
func TestClaimsWithLostRepliesAreReleasedTogether(t *testing.T) {
	const tasks, odd = 800, 400
	inBubbles(t, map[string]struct{ locked, refused bool }{
		"All": {}, "ButALockedRow": {locked: true}, "ButARefusedRow": {refused: true},
	}, func(w *world, but struct{ locked, refused bool }) {
		var mu sync.Mutex
		var saved []int64
		begun, unlock := 0, func() {}
		s := claimHook{w.store, func(ctx context.Context, claim row.Claim) (row.Claimed, error) {
			mu.Lock()
			defer mu.Unlock()
			claimed, err := w.store.Claim(ctx, claim)
			if begun += len(claim.Rows); begun > tasks {
				return claimed, err
			}
			if but.locked && begun == tasks {
				unlock = w.store.Lock(saved[odd])
			}
			return row.Claimed{}, classError(row.ClassUnknown, "the reply is lost")
		}}
		e := w.engine(crowded(updateHook{s, func(ctx context.Context, changes []row.Change) (int, error) {
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			refused := but.refused && slices.ContainsFunc(changes, func(c row.Change) bool {
				return c.ID == saved[odd] && c.To == row.Pending
			})
			mu.Unlock()
			if refused {
				return 0, classError(row.ClassCaller, "refused")
			}
			return s.Update(ctx, nil, changes)
		}}, "Update", 1), serving{"a": nothing})
		mu.Lock()
		saved = w.many(e, tasks, "a", 2*time.Second)
		mu.Unlock()
		time.Sleep(12 * time.Second) // the leases go on for 5 s; a release is tried again at least every 4 s
		mu.Lock()
		but.refused = false
		unlock()
		mu.Unlock()
		time.Sleep(time.Minute)
		w.completed(saved[odd], 30*time.Second)
		w.allCompleted(slices.Delete(saved, odd, odd+1), 5*time.Second)
	})
}

func TestReleaseKeepsADueTimeThatIsToCome(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		id := w.save(e, "a", time.Minute)
		due := w.row(id).Due
		first := row.Executor{Process: e.process.ID, Claim: 1}
		claimAndRelease := func(version int64) row.Row {
			_, err := w.store.Claim(
				w.Context(),
				row.Claim{Rows: []row.Ref{{ID: id, Version: version}}, Executor: first},
			)
			w.must(err)
			w.must(e.find.Passes.ReleaseOrphans(w.Context()))
			w.standing(row.Pending, 0, 0, id)
			return w.row(id)
		}
		if r := claimAndRelease(0); r.Due != due || r.Version != 2 {
			w.Errorf("released as %+v, its due time was %v", r, due)
		}
		time.Sleep(2 * time.Minute)
		now := row.At(time.Now())
		if r := claimAndRelease(2); r.Due < now.Add(-time.Second) || r.Due > now {
			w.Errorf("released as %+v, want it due now", r)
		}
		r := w.row(id)
		r.Status, r.Version, r.Executor = row.Executing, 7, row.Executor{Process: e.process.ID, Claim: 2}
		w.store.Plant(r)
		seen := row.State{ID: id, Version: 5, Status: row.Executing, Executor: first}
		if got := e.events.PutBack([]row.State{seen}, "test"); len(got) != 0 || w.row(id).Version != 7 {
			w.Errorf("released %v, which was claimed again", got)
		}
	})
}

func TestClaimWithALostReplyLeavesARowAloneThatAnotherProcessHasWon(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			c.Executor = another
			if _, err := w.store.Claim(ctx, c); err != nil {
				w.Error(err)
			}
			return row.Claimed{}, classError(row.ClassUnknown, "the reply is lost")
		}}, serving{"a": nothing})
		id := w.save(e, "a", 0)
		time.Sleep(5 * time.Second)
		if r := w.row(id); r.Status != row.Executing || r.Version != 1 || len(w.runs.of(id)) != 0 {
			w.Errorf("row %+v", r)
		}
	})
}

func TestUndecodableRowIsFailedAloneByItsClaim(t *testing.T) {
	inBubbles(t, map[string]func(*row.Row){
		"Headers":    func(r *row.Row) { r.Headers = []byte("{") },
		"Errors":     func(r *row.Row) { r.Errors = []byte(`"x"`) },
		"LatePolicy": func(r *row.Row) { r.LatePolicy = 9 },
	}, func(w *world, spoil func(*row.Row)) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		ids := w.saveMany(e, "a", 2, delaytask.WithTime(time.Now().Add(3*time.Second)))
		bad, good := ids[0], ids[1]
		r := w.row(bad)
		spoil(&r)
		w.store.Plant(r)
		time.Sleep(6 * time.Second)
		w.completed(good, 2*time.Millisecond)
		w.ran(bad, 0)
		rows, broken, _ := w.store.Get(w.Context(), nil, []int64{bad})
		if len(rows) != 0 || len(broken) != 1 || broken[0].Status != row.Failed {
			w.Errorf("got %v, %v, want it failed", rows, broken)
		}
	})
}

func TestClaimWhoseReplyOutlastsTheLeaseStartsNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		var calls atomic.Int64
		e := w.engine(claimHook{w.store, func(ctx context.Context, claim row.Claim) (row.Claimed, error) {
			got, err := w.store.Claim(ctx, claim)
			if calls.Add(1) == 1 {
				time.Sleep(1200 * time.Millisecond)
			}
			return got, err
		}}, serving{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0, delaytask.WithTTR(time.Second))
		time.Sleep(10 * time.Second)
		w.once(id)
		if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 || w.runs.of(id)[0].task.Version == 1 {
			w.Errorf("started at version %d: %+v", w.runs.of(id)[0].task.Version, r)
		}
	})
}

func TestNewerSightingReplacesTheTimer(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.engine(w.store, serving{"a": nothing})
		other := w.idle(w.store, nil)
		time.Sleep(2 * time.Second)
		later := w.save(a, "a", 4*time.Second)
		sooner := w.save(a, "a", 30*time.Minute)
		synctest.Wait()
		for id, delay := range map[int64]time.Duration{later: 8 * time.Second, sooner: 6 * time.Second} {
			_, err := other.Reschedule(w.Context(), nil, control.Ref{ID: id}, delay, time.Time{}, nil)
			w.must(err)
		}
		time.Sleep(12 * time.Second)
		w.completed(later, 2*time.Millisecond)
		w.completed(sooner, 2*time.Millisecond)
	})
}

func TestAttemptIsNotBurnedByAClaimThatIsRefused(t *testing.T) {
	inBubblesOf(
		t,
		[]row.Class{row.ClassNotApplied, row.ClassOperator, row.ClassCaller},
		func(w *world, class row.Class) {
			calls := 0
			e := w.engine(at(w.store, "Claim", func(_ context.Context, do func() error) error {
				if calls++; calls < 4 {
					return classError(class, "no")
				}
				return do()
			}), serving{"a": nothing})
			time.Sleep(time.Second)
			id := w.save(e, "a", 3*time.Second)
			time.Sleep(20 * time.Second)
			w.completed(id, 10*time.Second) // three times 3 s at most, and what a pass takes to come by
		},
	)
}

func TestLateClaimObeysThePolicy(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, serving{"a": nothing})
		ends := map[int64]row.Status{}
		for policy, end := range map[delaytask.LatePolicy]row.Status{
			delaytask.LateRun: row.Completed, delaytask.LateSkip: row.Cancelled, delaytask.LateFail: row.Failed,
		} {
			ends[w.save(e, "a", 0, delaytask.WithMaxLateness(time.Second, policy))] = end
		}
		ends[w.save(e, "a", 0, delaytask.WithMaxLateness(time.Minute, delaytask.LateSkip))] = row.Completed
		time.Sleep(10 * time.Second)
		w.must(e.Start(w.Context()))
		time.Sleep(5 * time.Second)
		for id, end := range ends {
			if end == row.Completed {
				w.completed(id, 12*time.Second)
			} else if r := w.row(id); r.Status != end ||
				len(w.runs.of(id)) != 0 || r.ErrorStack == "" || r.Errors == nil {
				w.Errorf("%v after %d runs, want %v: %q", r.Status, len(w.runs.of(id)), end, r.ErrorStack)
			}
		}
	})
}

func TestPriorityDecidesAmongWhatIsReady(t *testing.T) {
	inBubble(t, func(w *world) {
		var order []int
		e := w.engine(w.store, serving{"a": func(_ context.Context, task *delaytask.Task) error {
			order = append(order, task.Priority)
			time.Sleep(100 * time.Millisecond)
			return nil
		}}, func(c *Config) { c.Concurrency = 1 })
		time.Sleep(time.Second)
		w.save(e, "a", 0, delaytask.WithPriority(1))
		time.Sleep(10 * time.Millisecond)
		for _, p := range []int{-5, 0, 7, 3} {
			w.save(e, "a", 10*time.Millisecond, delaytask.WithPriority(p))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Equal(order, []int{1, 7, 3, 0, -5}) {
			w.Errorf("ran in the order %v", order)
		}
	})
}

// The version stays as it was, so the claim wins the rows. Those that are due much later keep no slots until then.
func TestARowThatIsPutOffByHandStartsWhenItIsDueThen(t *testing.T) {
	inBubblesOf(t, []time.Duration{3 * time.Millisecond, 5 * time.Second, time.Hour}, func(w *world, by time.Duration) {
		var once sync.Once
		saved, putOff := make(chan []int64, 1), make(chan struct{})
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			once.Do(func() {
				for _, id := range <-saved {
					r := w.row(id)
					r.Expected, r.Due = r.Expected.Add(by), r.Due.Add(by)
					w.store.Plant(r)
				}
				close(putOff)
			})
			return w.store.Claim(ctx, c)
		}}, serving{"a": nothing})
		time.Sleep(time.Second)
		ids := w.many(e, e.cfg.Concurrency, "a", 4*time.Second)
		saved <- ids
		<-putOff
		time.Sleep(100 * time.Millisecond)
		fresh := w.save(e, "a", time.Second)
		time.Sleep(2*time.Second + by)
		w.completed(fresh, 5*time.Millisecond)
		w.allCompleted(ids, 2*time.Millisecond)
	})
}

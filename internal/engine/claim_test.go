package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// claimHook stands in for Claim.
type claimHook struct {
	Store
	hook func(ctx context.Context, c row.Claim) (row.Claimed, error)
}

func (s claimHook) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	return s.hook(ctx, c)
}

func TestTasksDueTogetherAreClaimedTogetherAndStartOnTheirOwnMillisecond(t *testing.T) {
	inBubble(t, func(w *world) {
		var sizes []int
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			sizes = append(sizes, len(c.Rows))
			return w.store.Claim(ctx, c)
		}}, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		at := time.Now().Add(5 * time.Second)
		var ids []int64
		for i := range 20 {
			ids = append(ids, w.save(e, "a", 0, processor.WithTime(at.Add(time.Duration(i)*time.Millisecond))))
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
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			time.Sleep(10 * time.Millisecond)
			return w.store.Claim(ctx, c)
		}}, map[string]processor.Func{"a": nothing})
		w.save(e, "a", 0) // from here on the round trip is known
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(5 * time.Second)
		w.completed(id, 2*time.Millisecond)
	})
}

func TestLockedRowInAClaimBatchHoldsUpNobody(t *testing.T) {
	inBubble(t, func(w *world) {
		var waited atomic.Int64
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			got, err := w.store.Claim(ctx, c)
			if err != nil {
				waited.Add(1)
			}
			return got, err
		}}, map[string]processor.Func{"a": nothing, "b": nothing})
		time.Sleep(time.Second)
		at := time.Now().Add(2500 * time.Millisecond)
		locked := w.save(e, "a", 0, processor.WithTime(at))
		unlock := w.store.Lock(locked)
		var same []int64
		for range 10 {
			same = append(same, w.save(e, "a", 0, processor.WithTime(at)))
		}
		time.Sleep(5 * time.Second)
		for _, id := range same {
			w.completed(id, 1100*time.Millisecond)
		}
		var later []int64
		for range 40 {
			later = append(later, w.save(e, "a", 300*time.Millisecond), w.save(e, "b", 0))
			time.Sleep(time.Second)
		}
		for _, id := range later {
			w.completed(id, 5*time.Millisecond)
		}
		if n := waited.Load(); n > 2 {
			w.Errorf("%d claims waited for the lock, want one", n)
		}
		began := time.Now()
		unlock()
		time.Sleep(10 * time.Second)
		if got := w.runs.of(locked); len(got) != 1 || got[0].at.Sub(began) > 6*time.Second {
			w.Errorf("the row that was locked: %v", got)
		}
	})
}

func TestLockedRowIsAskedForLessAndLess(t *testing.T) {
	inBubble(t, func(w *world) {
		var probed atomic.Int64
		e := w.engine(lockedHook{w.store, func([]int64) { probed.Add(1) }}, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		unlock := w.store.Lock(id)
		time.Sleep(30 * time.Second)
		if n := probed.Load(); n > 20 {
			w.Errorf("the locked row was asked for %d times in 27 s", n)
		}
		unlock()
		time.Sleep(10 * time.Second)
		w.once(id)
	})
}

type lockedHook struct {
	Store
	seen func(ids []int64)
}

func (s lockedHook) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	s.seen(ids)
	return s.Store.Locked(ctx, ids)
}

func TestClaimWithALostReply(t *testing.T) {
	for name, c := range map[string]struct {
		apply time.Duration // after the call; negative: never
		late  time.Duration // how late the task may start
	}{
		"AppliedAtOnce": {0, 100 * time.Millisecond},
		"AppliedLate":   {300 * time.Millisecond, 1200 * time.Millisecond},
		"NeverApplied":  {-1, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
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
				}}, map[string]processor.Func{"a": nothing})
				time.Sleep(time.Second)
				id := w.save(e, "a", 3*time.Second)
				time.Sleep(time.Minute)
				w.completed(id, c.late)
			})
		})
	}
}

func TestReleaseOfARowClaimedAheadKeepsItsDueTime(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		id := w.save(e, "a", time.Minute)
		due := w.row(id).Due
		claim := row.Claim{Rows: []row.Ref{{ID: id}}, Executor: e.passes.executor + ":1"}
		if _, err := w.store.Claim(w.Context(), claim); err != nil {
			w.Fatal(err)
		}
		if err := e.passes.strays(w.Context()); err != nil {
			w.Fatal(err)
		}
		if r := w.row(id); r.Status != row.Pending || r.Due != due || r.Attempt != 0 || r.Version != 2 {
			w.Errorf("released as %+v, its due time was %v", r, due)
		}
		claim.Rows[0].Version = 2
		time.Sleep(2 * time.Minute)
		if _, err := w.store.Claim(w.Context(), claim); err != nil {
			w.Fatal(err)
		}
		if err := e.passes.strays(w.Context()); err != nil {
			w.Fatal(err)
		}
		if r := w.row(id); r.Status != row.Pending || r.Due < row.At(time.Now()).Add(-time.Second) || r.Due > row.At(time.Now()) {
			w.Errorf("released as %+v, want it due now", r)
		}
	})
}

func TestClaimWithALostReplyLeavesARowAloneThatAnotherProcessHasWon(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			c.Executor = "other:1:token:1"
			if _, err := w.store.Claim(ctx, c); err != nil {
				w.Error(err)
			}
			return row.Claimed{}, classError(row.ClassUnknown, "the reply is lost")
		}}, map[string]processor.Func{"a": nothing})
		id := w.save(e, "a", 0)
		time.Sleep(5 * time.Second)
		if r := w.row(id); r.Status != row.Executing || r.Version != 1 || len(w.runs.of(id)) != 0 {
			w.Errorf("row %+v", r)
		}
	})
}

func TestReleaseLeavesARowAloneThatWasClaimedAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		id := w.save(e, "a", 0)
		r := w.row(id)
		r.Status, r.Version, r.Executor, r.Attempt = row.Executing, 3, e.passes.executor+":2", 2
		w.store.Plant(r)
		seen := row.State{ID: id, Version: 1, Status: row.Executing, Executor: e.passes.executor + ":1"}
		if got := e.release([]row.State{seen}, "test"); len(got) != 0 || w.row(id).Version != 3 {
			w.Errorf("released %v", got)
		}
	})
}

// TestEveryRowIsInOneHand lets all sources see the same rows at once: no claim may carry a row that another open claim carries.
func TestEveryRowIsInOneHand(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		open := map[int64]bool{}
		e := w.engine(claimHook{w.store, func(ctx context.Context, claim row.Claim) (row.Claimed, error) {
			mu.Lock()
			for _, ref := range claim.Rows {
				if open[ref.ID] {
					w.Errorf("task %d is in two open claims", ref.ID)
				}
				open[ref.ID] = true
			}
			mu.Unlock()
			time.Sleep(700 * time.Millisecond)
			got, err := w.store.Claim(ctx, claim)
			mu.Lock()
			defer mu.Unlock()
			for _, ref := range claim.Rows {
				delete(open, ref.ID)
			}
			return got, err
		}}, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			time.Sleep(time.Second)
			return nil
		}})
		time.Sleep(time.Second)
		var ids []int64
		for range 50 {
			ids = append(ids, w.save(e, "a", 200*time.Millisecond))
		}
		for range 40 {
			time.Sleep(50 * time.Millisecond)
			for _, id := range ids {
				if err := e.processTask(w.Context(), id); err != nil {
					w.Error(err)
				}
			}
			if err := e.lookahead.runOnce(w.Context()); err != nil {
				w.Error(err)
			}
			e.passes.runner.Kick(passScan)
			e.passes.runner.Kick(passStrays)
		}
		time.Sleep(5 * time.Second)
		for _, id := range ids {
			w.completed(id, 2*time.Second)
		}
	})
}

func TestUndecodableRowIsFailedAloneByItsClaim(t *testing.T) {
	for name, spoil := range map[string]func(*row.Row){
		"Headers":    func(r *row.Row) { r.Headers = []byte("{") },
		"Errors":     func(r *row.Row) { r.Errors = []byte(`"x"`) },
		"LatePolicy": func(r *row.Row) { r.LatePolicy = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				e := w.engine(w.store, map[string]processor.Func{"a": nothing})
				time.Sleep(time.Second)
				at := time.Now().Add(3 * time.Second)
				bad := w.save(e, "a", 0, processor.WithTime(at))
				good := w.save(e, "a", 0, processor.WithTime(at))
				r := w.row(bad)
				spoil(&r)
				w.store.Plant(r)
				time.Sleep(6 * time.Second)
				w.completed(good, 2*time.Millisecond)
				if n := len(w.runs.of(bad)); n != 0 {
					w.Errorf("the undecodable row was run %d times", n)
				}
				rows, broken, _ := w.store.Get(w.Context(), nil, []int64{bad})
				if len(rows) != 0 || len(broken) != 1 || broken[0].Status != row.Failed {
					w.Errorf("got %v, %v, want it failed", rows, broken)
				}
			})
		})
	}
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
		}}, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0, processor.WithTTR(time.Second))
		time.Sleep(10 * time.Second)
		w.once(id)
		if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 || w.runs.of(id)[0].task.Version == 1 {
			w.Errorf("started at version %d: %+v", w.runs.of(id)[0].task.Version, r)
		}
	})
}

func TestTwoNodesShareOneClaimedRow(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.engine(w.store, map[string]processor.Func{"a": nothing})
		b := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(2 * time.Second)
		var ids []int64
		for range 100 {
			ids = append(ids, w.save(a, "a", 3*time.Second))
		}
		time.Sleep(2 * time.Second)
		for _, id := range ids { // both have every row armed
			d := w.row(id)
			a.hands.arm(dueOf(&d), true)
			b.hands.arm(dueOf(&d), true)
		}
		time.Sleep(5 * time.Second)
		for _, id := range ids {
			w.completed(id, 2*time.Millisecond)
		}
	})
}

func TestNewerSightingReplacesTheTimer(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.engine(w.store, map[string]processor.Func{"a": nothing})
		other := w.idle(w.store, nil)
		time.Sleep(2 * time.Second)
		later := w.save(a, "a", 4*time.Second)
		sooner := w.save(a, "a", 30*time.Minute)
		synctest.Wait()
		for id, delay := range map[int64]time.Duration{later: 8 * time.Second, sooner: 6 * time.Second} {
			if _, err := other.Reschedule(w.Context(), nil, Ref{ID: id}, delay, time.Time{}, nil); err != nil {
				w.Fatal(err)
			}
		}
		time.Sleep(12 * time.Second)
		w.completed(later, 2*time.Millisecond)
		w.completed(sooner, 2*time.Millisecond)
	})
}

func TestAttemptIsNotBurnedByAClaimThatIsRefused(t *testing.T) {
	for _, class := range []row.Class{row.ClassNotApplied, row.ClassOperator, row.ClassCaller} {
		t.Run(class.String(), func(t *testing.T) {
			inBubble(t, func(w *world) {
				calls := 0
				e := w.engine(claimHook{w.store, func(ctx context.Context, claim row.Claim) (row.Claimed, error) {
					if calls++; calls < 4 {
						return row.Claimed{}, classError(class, "no")
					}
					return w.store.Claim(ctx, claim)
				}}, map[string]processor.Func{"a": nothing})
				time.Sleep(time.Second)
				id := w.save(e, "a", 3*time.Second)
				time.Sleep(20 * time.Second)
				w.completed(id, 9*time.Second)
			})
		})
	}
}

func TestLateClaimObeysThePolicy(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, map[string]processor.Func{"a": nothing})
		ids := map[processor.LatePolicy]int64{}
		for _, policy := range []processor.LatePolicy{processor.LateRun, processor.LateSkip, processor.LateFail} {
			ids[policy] = w.save(e, "a", 0, processor.WithMaxLateness(time.Second, policy))
		}
		inTime := w.save(e, "a", 0, processor.WithMaxLateness(time.Minute, processor.LateSkip))
		time.Sleep(10 * time.Second)
		if err := e.Start(w.Context()); err != nil {
			w.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		w.completed(ids[processor.LateRun], 12*time.Second)
		w.completed(inTime, 12*time.Second)
		ends := map[processor.LatePolicy]row.Status{processor.LateSkip: row.Cancelled, processor.LateFail: row.Failed}
		for policy, want := range ends {
			r := w.row(ids[policy])
			if r.Status != want || len(w.runs.of(r.ID)) != 0 || r.ErrorStack == "" || r.Errors == nil {
				w.Errorf("policy %d: %v after %d runs: %q", policy, r.Status, len(w.runs.of(r.ID)), r.ErrorStack)
			}
		}
	})
}

func TestPriorityDecidesAmongWhatIsReady(t *testing.T) {
	inBubble(t, func(w *world) {
		var order []int
		e := w.engine(w.store, map[string]processor.Func{"a": func(_ context.Context, task *processor.Task) error {
			order = append(order, task.Priority)
			time.Sleep(100 * time.Millisecond)
			return nil
		}}, func(c *Config) { c.Workers = 1 })
		time.Sleep(time.Second)
		w.save(e, "a", 0, processor.WithPriority(1))
		time.Sleep(10 * time.Millisecond)
		for _, p := range []int{-5, 0, 7, 3} {
			w.save(e, "a", 10*time.Millisecond, processor.WithPriority(p))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Equal(order, []int{1, 7, 3, 0, -5}) {
			w.Errorf("ran in the order %v", order)
		}
	})
}

// The version stays as it was, so the claim wins the row.
func TestARowThatIsPutOffByHandStartsWhenItIsDueThen(t *testing.T) {
	for name, by := range map[string]time.Duration{"Moment": 3 * time.Millisecond, "Seconds": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				var putOff sync.Once
				e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
					putOff.Do(func() {
						r := w.row(c.Rows[0].ID)
						r.Expected, r.Due = r.Expected.Add(by), r.Due.Add(by)
						w.store.Plant(r)
					})
					return w.store.Claim(ctx, c)
				}}, map[string]processor.Func{"a": nothing})
				time.Sleep(time.Second)
				id := w.save(e, "a", 4*time.Second)
				time.Sleep(4*time.Second + by + time.Second)
				w.completed(id, 2*time.Millisecond)
			})
		})
	}
}

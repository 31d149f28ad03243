package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

func TestLeaseIsRenewedWhenAThirdOfItHasPassed(t *testing.T) {
	inBubble(t, func(w *world) {
		var renewals, last atomic.Int64 // last is when the lease was taken or renewed
		e := w.engine(at(w.store, "Renew", func(_ context.Context, do func() error) error {
			now := time.Now().UnixNano()
			after := time.Duration(now - last.Swap(now))
			if after < 5*time.Second || after > 5*time.Second+2*250*time.Millisecond {
				w.Errorf("a lease of 15 s was renewed after %v", after)
			}
			renewals.Add(1)
			return do()
		}), serving{"a": untilEnd(time.Minute, nil)})
		w.engine(w.store, nil) // would rescue
		time.Sleep(time.Second)
		last.Store(time.Now().UnixNano())
		id := w.save(e, "a", 0, delaytask.WithTTR(15*time.Second))
		time.Sleep(2 * time.Minute)
		if n := renewals.Load(); n < 10 {
			w.Errorf("%d renewals in a minute", n)
		}
		w.completed(id, time.Second)
	})
}

func TestLeaseThatASlowClaimLeavesLittleOfIsRenewedAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(at(w.store, "Claim", func(_ context.Context, do func() error) error {
			defer time.Sleep(950 * time.Millisecond)
			return do()
		}), serving{"a": untilEnd(time.Second, nil)})
		w.engine(w.store, nil) // would rescue
		id := w.save(e, "a", 600*time.Millisecond, delaytask.WithTTR(time.Second))
		time.Sleep(time.Minute)
		w.completed(id, time.Second)
	})
}

func TestLockedRowInARenewalBatchCostsNoOtherTaskItsLease(t *testing.T) {
	inBubblesOf(t, []time.Duration{3 * time.Second, 15 * time.Second}, func(w *world, ttr time.Duration) {
		var waited, asked atomic.Int64
		counted := at(w.store, "Locked", func(_ context.Context, do func() error) error {
			asked.Add(1)
			return do()
		})
		w.besideALockedRow(at(counted, "Renew", func(_ context.Context, do func() error) error {
			began := time.Now()
			err := do()
			if time.Since(began) > 100*time.Millisecond {
				waited.Add(1)
			}
			return err
		}), ttr)
		if n := waited.Load(); n > 1 {
			w.Errorf("%d renewals waited for the lock in 39 s", n)
		}
		if n, renewals := asked.Load(), int64(39*time.Second/(ttr/3)); n > 6*renewals {
			w.Errorf("asked %d times what is locked, for %d renewals", n, renewals)
		}
	})
}

// On a slow disk a statement holds its rows for longer than another one waits for them.
func TestARenewalAndTheResultOfATaskAreNotInFlightTogether(t *testing.T) {
	const renewal = time.Second // after the claim
	inBubbles(t, map[string]time.Duration{"RenewalFirst": renewal * 6 / 5, "ResultFirst": renewal * 19 / 20},
		func(w *world, runs time.Duration) {
			var mu sync.Mutex
			inFlight := map[string]bool{}
			e := w.engine(around{w.store, func(_ context.Context, call string, do func() error) error {
				if call != "Renew" && call != "Update" {
					return do()
				}
				mu.Lock()
				if len(inFlight) > 0 {
					w.Errorf("%s begins while %v is in flight", call, inFlight)
				}
				inFlight[call] = true
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					delete(inFlight, call)
				}()
				time.Sleep(700 * time.Millisecond)
				return do()
			}}, serving{"a": untilEnd(runs, nil)})
			id := w.save(e, "a", 0, delaytask.WithTTR(3*time.Second))
			time.Sleep(5 * time.Second)
			w.allCompleted([]int64{id}, time.Second)
		})
}

// besideALockedRow runs ten tasks with leases of these lengths in turn. Another transaction holds the last one's row.
func (w *world) besideALockedRow(store store.Store, ttrs ...time.Duration) {
	w.Helper()
	e := w.engine(store, serving{"a": untilEnd(40*time.Second, nil)})
	w.engine(w.store, nil) // would rescue
	time.Sleep(time.Second)
	var ids []int64
	for i := range 10 {
		ids = append(ids, w.save(e, "a", 0, delaytask.WithTTR(ttrs[i%len(ttrs)])))
	}
	time.Sleep(100 * time.Millisecond)
	unlock := w.store.Lock(ids[9])
	time.Sleep(39 * time.Second)
	unlock()
	time.Sleep(20 * time.Second)
	w.allCompleted(ids[:9], time.Second)
}

// lingering renews as a server does that knows nothing of its client's patience: row by row in the order of ids, each
// waited for up to a second with those before it held, also when its caller has given up.
func (w *world) lingering() renewHook {
	renew := func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
		var held []func()
		letGo := func() {
			for _, unlock := range held {
				unlock()
			}
		}
		for _, id := range slices.Sorted(slices.Values(row.IDsOf(leases, func(l row.Lease) int64 { return l.ID }))) {
			for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				if locked, _ := w.store.Locked(ctx, []int64{id}); len(locked) == 0 {
					break
				}
				if time.Since(began) >= time.Second {
					letGo()
					return nil, classError(row.ClassLocked, "held")
				}
			}
			held = append(held, w.store.Lock(id))
		}
		letGo()
		return w.store.Renew(ctx, leases)
	}
	return renewHook{w.store, func(ctx context.Context, leases []row.Lease) (states []row.State, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			states, err = renew(context.WithoutCancel(ctx), leases)
		}()
		select {
		case <-done:
			return states, err
		case <-ctx.Done():
			return nil, classError(row.ClassUnknown, "given up")
		}
	}}
}

// A lease of a second leaves no time to wait for a lock: the statement is given up, and goes on on the server.
func TestShortLeasesAreKeptBesideALockedRow(t *testing.T) {
	inBubbles(t, map[string][]time.Duration{
		"Short":            {time.Second, time.Second},
		"LongAndShort":     {15 * time.Second, time.Second},
		"ShortAndLong":     {time.Second, 15 * time.Second},
		"OfManyLengths":    {time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second, 15 * time.Second},
		"NothingButLonger": {6 * time.Second, 15 * time.Second},
	}, func(w *world, ttrs []time.Duration) { w.besideALockedRow(w.lingering(), ttrs...) })
}

func TestLeasesAreRenewedWhenTheLockCheckFails(t *testing.T) {
	inBubble(t, func(w *world) {
		var asked atomic.Int64
		e := w.engine(at(w.store, "Locked", func(ctx context.Context, _ func() error) error {
			asked.Add(1)
			<-ctx.Done()
			return classError(row.ClassUnknown, "given up")
		}), serving{"a": untilEnd(20*time.Second, nil)})
		w.engine(w.store, nil) // would rescue
		time.Sleep(time.Second)
		e.Locks.Note()
		var ids []int64
		for _, ttr := range []time.Duration{1, 2, 4, 6, 15} {
			ids = append(ids, w.save(e, "a", 0, delaytask.WithTTR(ttr*time.Second)))
		}
		time.Sleep(30 * time.Second)
		w.allCompleted(ids, time.Second)
		if n := asked.Load(); n > 6 { // every 10 s, for short leases and for long ones
			w.Errorf("asked %d times what is locked", n)
		}
	})
}

// Neither kind of lease waits for the statement of the other, whether the database answers late or not at all.
func TestLeasesOfOneLengthKeepNoneOfAnother(t *testing.T) {
	const short, long = time.Second, 15 * time.Second
	type renewals struct{ slow, kept, takes time.Duration }
	inBubbles(t, map[string]renewals{
		"LongOnesHang":    {long, short, time.Hour},
		"ShortOnesHang":   {short, long, time.Hour},
		"ASlowerDatabase": {0, long, 3 * time.Second},
	}, func(w *world, c renewals) {
		w.runs.hangs = true
		e := w.engine(renewHook{w.store, func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
			isSlow := func(l row.Lease) bool { return c.slow == 0 || l.TTR == c.slow }
			if slices.ContainsFunc(leases, isSlow) && !lifecycle.Sleep(ctx, c.takes) {
				return nil, classError(row.ClassUnknown, "given up")
			}
			return w.store.Renew(ctx, leases)
		}}, serving{"a": untilEnd(40*time.Second, nil), "stream": untilEnd(2*time.Second, nil)})
		w.lossy[e] = true
		w.engine(w.store, nil) // would rescue
		time.Sleep(time.Second)
		go func() {
			for range 200 {
				w.save(e, "stream", 0, delaytask.WithTTR(short))
				time.Sleep(200 * time.Millisecond)
			}
		}()
		var kept []int64
		for _, ttr := range []time.Duration{short, long, 2 * long} {
			if ids := w.saveMany(e, "a", 5, delaytask.WithTTR(ttr)); ttr == c.kept {
				kept = ids
			}
		}
		time.Sleep(42 * time.Second)
		w.allCompleted(kept, time.Second)
	})
}

func TestContextEndsWithTheLeaseWhenRenewalsFail(t *testing.T) {
	inBubbles(t, map[string]func(ctx context.Context, do func() error) error{
		"Refused": func(context.Context, func() error) error { return classError(row.ClassNotApplied, "no") },
		"Hanging": func(ctx context.Context, _ func() error) error { <-ctx.Done(); return ctx.Err() },
	}, func(w *world, fail func(context.Context, func() error) error) {
		ends := make(chan ended, 10)
		e := w.engine(at(w.store, "Renew", fail), serving{"a": untilEnd(30*time.Second, ends)})
		time.Sleep(time.Second)
		began := time.Now()
		id := w.save(e, "a", 0, delaytask.WithTTR(4*time.Second), delaytask.WithMaxAttempts(1))
		end := <-ends
		if took := end.at.Sub(began); !errors.Is(end.cause, delaytask.ErrLeaseLost) || took < 3*time.Second ||
			took > 4500*time.Millisecond {
			w.Errorf("the context ended %v after a claim with a TTR of 4 s: %v", took, end.cause)
		}
		time.Sleep(100 * time.Millisecond)
		if r := w.row(id); r.Status == row.Failed {
			w.Errorf("an attempt that lost its lease was counted: %+v", r)
		}
	})
}

func TestRenewedLeaseCountsFromBeforeTheRenewalWasSent(t *testing.T) {
	inBubble(t, func(w *world) {
		ends := make(chan ended, 10)
		var sent time.Time // the only renewal that is answered, late
		e := w.engine(at(w.store, "Renew", func(_ context.Context, do func() error) error {
			if !sent.IsZero() {
				return classError(row.ClassNotApplied, "no")
			}
			sent = time.Now()
			defer time.Sleep(900 * time.Millisecond)
			return do()
		}), serving{"a": untilEnd(30*time.Second, ends)})
		w.save(e, "a", 0, delaytask.WithTTR(4*time.Second))
		if held := (<-ends).at.Sub(sent); held > 4*time.Second+250*time.Millisecond {
			w.Errorf("the context ended %v after a lease of 4 s was asked for", held)
		}
	})
}

func TestLateExecutorChangesNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		first := true
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			if first {
				first = false
				time.Sleep(3 * time.Second)
			}
			return nil
		}})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0)
		time.Sleep(time.Second)
		r := w.row(id) // another process takes the row and completes it
		r.Version, r.Status, r.ErrorStack, r.Due = r.Version+5, row.Completed, "theirs", 7
		w.store.Plant(r)
		time.Sleep(10 * time.Second)
		if got := w.row(id); got.Version != r.Version || got.ErrorStack != "theirs" || got.Due != 7 {
			w.Errorf("the late executor changed the row: %+v", got)
		}
		w.once(id)
	})
}

func TestCancelEndsARunningProcessor(t *testing.T) {
	inBubbles(
		t,
		map[string]time.Duration{"Here": 0, "OnAnotherNode": 3 * time.Second},
		func(w *world, most time.Duration) {
			ends := make(chan ended, 1)
			e := w.engine(w.store, serving{"a": untilEnd(time.Hour, ends)})
			by := e
			if most > 0 {
				by = w.idle(w.store, nil)
			}
			id := w.save(e, "a", 0, delaytask.WithTTR(10*time.Minute))
			time.Sleep(7777 * time.Millisecond)
			began := time.Now()
			if met, err := by.Cancel(w.Context(), nil, control.Ref{ID: id}, false); err != nil || met != row.Executing {
				w.Fatalf("cancel: met %v, %v", met, err)
			}
			end := <-ends
			if took := end.at.Sub(began); took > most || !errors.Is(end.cause, delaytask.ErrCancelled) {
				w.Errorf("the context ended after %v with %v", took, end.cause)
			}
			time.Sleep(5 * time.Second)
			if r := w.row(id); r.Status != row.Cancelled || r.ErrorStack != "" {
				w.Errorf("the result of a cancelled task was taken: %+v", r)
			}
		},
	)
}

func TestTaskCancelledAfterItsClaimAndBeforeItsStartNeverStarts(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(3*time.Second - 5*time.Millisecond)
		met, err := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false)
		if err != nil || met != row.Executing {
			w.Fatalf("cancel: met %v, %v; want it claimed ahead", met, err)
		}
		time.Sleep(5 * time.Second)
		w.ran(id, 0)
		if got := w.series(e); got["runs_total{a,cancelled}"] != 1 ||
			got["runs_total{a,lease_lost}"]+got["runs_total{a,released}"] != 0 {
			w.Errorf("the task is not counted once, as cancelled: %v", got)
		}
		if r := w.row(id); r.Status != row.Cancelled || e.pool.Attempts.Len() != 0 || e.runqueue.Owns(id) {
			w.Errorf("%d runs in the book, row %+v", e.pool.Attempts.Len(), r)
		}
	})
}

func TestAttemptEndsWithItsTimeout(t *testing.T) {
	inBubble(t, func(w *world) {
		ends := make(chan ended, 10)
		e := w.engine(w.store, serving{"a": untilEnd(time.Hour, ends)}, func(c *Config) {
			c.Timeout = 7 * time.Second
			c.MaxAttempts = 1
		})
		time.Sleep(time.Second)
		began := time.Now()
		id := w.save(e, "a", 0)
		if end := <-ends; end.at.Sub(began) > 7100*time.Millisecond || !errors.Is(end.cause, delaytask.ErrTimeout) {
			w.Errorf("ended after %v with %v", end.at.Sub(began), end.cause)
		}
		time.Sleep(time.Second)
		if r := w.row(id); r.Status != row.Failed || r.Attempt != 1 {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestProcessorThatIgnoresItsContextLosesLeaseSlotAndRow(t *testing.T) {
	inBubble(t, func(w *world) {
		w.runs.hangs = true
		wake := make(chan struct{})
		var hung atomic.Int64
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if c := changes[0]; c.ID == hung.Load() && c.Version == 1 && !c.LeaseOver {
				w.Error("the result was sent of the attempt whose row was let go") // perhaps with the next one's result
			}
			return w.store.Update(ctx, nil, changes)
		}}, serving{
			"stuck": func(_ context.Context, task *delaytask.Task) error {
				if task.Version == 1 {
					<-wake
				}
				return nil
			},
			"a": nothing,
		}, func(c *Config) {
			c.Timeout, c.StopGrace, c.TTR, c.Concurrency = 5*time.Second, 2*time.Second, 3*time.Second, 1
		})
		time.Sleep(time.Second)
		id := w.save(e, "stuck", 0)
		hung.Store(id)
		time.Sleep(20 * time.Second)
		free := w.save(e, "a", 0)
		time.Sleep(5 * time.Second)
		w.completed(free, 100*time.Millisecond)
		r, runs := w.row(id), w.runs.of(id)
		if r.Status != row.Completed || r.CrashCount != 1 || r.Attempt != 1 || len(runs) != 2 {
			w.Fatalf("%d runs, row %+v; want the task run here once more", len(runs), r)
		}
		// The timeout, the grace and a lease; then a rescue within 5 s, and a look at the versions.
		if took := runs[1].at.Sub(runs[0].at); took > (5+2+3+5+2)*time.Second {
			w.Errorf("run once more after %v", took)
		}
		close(wake)
		time.Sleep(time.Second)
		if again := w.row(id); again.Version != r.Version || again.Due != r.Due {
			w.Errorf("the late return changed the row: %+v", again)
		}
		if e.runqueue.Owns(id) || e.pool.Attempts.Len() != 0 {
			w.Error("the row is still in hand")
		}
	})
}

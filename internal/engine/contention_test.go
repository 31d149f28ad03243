package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// stream saves tasks that are due at once, as many as keep so many percent of the workers busy with a while each, until the test ends.
func (w *world) stream(workers int, each time.Duration, percent int) *Engine {
	w.Helper()
	e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(each, nil)}, func(c *Config) { c.Workers = workers })
	w.lossy[e] = true // what waits at the end is left
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	go func() {
		dice := rand.New(rand.NewPCG(1, 2))
		for ctx.Err() == nil {
			w.save(e, "a", 0)
			time.Sleep(time.Duration(dice.ExpFloat64() * float64(each) * 100 / float64(workers*percent)))
		}
	}()
	time.Sleep(20 * time.Second)
	return e
}

// Slots come free one by one there, and a younger task waits for each.
func TestABacklogHasItsTurnBesideAStreamOfYoungerTasks(t *testing.T) {
	for _, workers := range []int{8, 64} {
		for _, percent := range []int{85, 105} {
			inBubble(t, func(w *world) {
				w.stream(workers, time.Second, percent)
				due := row.At(time.Now().Add(-10 * time.Second))
				for id := range int64(10) {
					w.plain(1+id, "a", due)
				}
				time.Sleep(20 * time.Second)
				for id := range int64(10) {
					if s := w.row(1 + id).Status; s != row.Completed {
						w.Errorf("%d workers, %d %% busy: task %d is %v", workers, percent, 1+id, s)
					}
				}
			})
		}
	}
}

func TestASuspectHasItsTurnBesideAStreamOfYoungerTasks(t *testing.T) {
	inBubble(t, func(w *world) {
		w.stream(8, time.Second, 250)
		due := row.At(time.Now().Add(-time.Minute))
		for crashes := suspectAt; crashes < 5; crashes++ {
			w.store.Plant(row.Row{
				ID: int64(crashes), Tag: "a", Body: []byte("{}"), Due: due, Expected: due, CrashCount: crashes, TTR: time.Minute,
			})
		}
		time.Sleep(time.Minute)
		for crashes := suspectAt; crashes < 5; crashes++ {
			if s := w.row(int64(crashes)).Status; s != row.Completed {
				w.Errorf("a task that has lost %d executors is %v", crashes, s)
			}
		}
	})
}

// slowClaims takes a while for each row of a claim, one claim after the other, also when nobody waits for the answer any more.
type slowClaims struct {
	Store
	each time.Duration
	turn chan struct{}
}

func (s *slowClaims) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	type answer struct {
		row.Claimed
		error
	}
	answered := make(chan answer, 1)
	go func() {
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-s.turn }()
		time.Sleep(time.Duration(len(c.Rows)) * s.each)
		claimed, err := s.Store.Claim(context.WithoutCancel(ctx), c)
		answered <- answer{claimed, err}
	}()
	select {
	case a := <-answered:
		return a.Claimed, a.error
	case <-ctx.Done():
		return row.Claimed{}, &row.Error{Class: row.ClassUnknown, Op: "claim tasks", Err: ctx.Err()}
	}
}

// Leases of a minute never say that the claims take long.
func TestClaimsThatOutlastTheirCallGetSmaller(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 2000
		due := row.At(time.Now().Add(-time.Minute))
		for i := range int64(tasks) {
			w.store.Plant(row.Row{
				ID: 1000 + i, Tag: "a", Body: []byte("{}"), Due: due + row.Time(i), Expected: due, TTR: time.Minute, MaxAttempts: 20,
			})
		}
		db := &slowClaims{w.store, 25 * time.Millisecond, make(chan struct{}, 1)}
		w.engine(db, map[string]processor.Func{"a": nothing}, func(c *Config) { c.Workers = 600 })
		time.Sleep(4 * time.Minute)
		done, _, err := w.store.List(w.Context(), row.Filter{Tag: "a", Status: new(row.Completed), Limit: tasks}, false)
		if err != nil || len(done) < tasks {
			w.Errorf("%d of %d tasks are done: %v", len(done), tasks, err)
		}
	})
}

// twoSettlers is a store with as many connections for results as the real one has.
type twoSettlers struct {
	Store
	conns chan struct{}
}

func (s twoSettlers) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	select {
	case s.conns <- struct{}{}:
	case <-ctx.Done():
		return 0, &row.Error{Class: row.ClassNotApplied, Op: "settle tasks", Err: ctx.Err()}
	}
	defer func() { <-s.conns }()
	return s.Store.Update(ctx, tx, changes)
}

// unhindered checks that results and rescues are written in time.
func (w *world) unhindered(e *Engine) {
	w.Helper()
	const crashed = 77
	now := row.At(time.Now())
	w.store.Plant(row.Row{
		ID: crashed, Tag: "b", Status: row.Executing, Version: 1, Attempt: 1, MaxAttempts: 3, Executor: "host:1:gone:1",
		Due: now.Add(time.Second), Expected: now, TTR: time.Second, Body: []byte("{}"),
	})
	for range 6 {
		id := w.save(e, "b", time.Second)
		time.Sleep(1500 * time.Millisecond)
		if s := w.row(id).Status; s != row.Completed {
			w.Errorf("a task is %v half a second after it was due", s)
		}
	}
	if w.row(crashed).CrashCount != 1 {
		w.Error("a lease is not ended 8 s after it was over")
	}
}

func TestLeasesOfPoppedRowsThatAreLockedHoldUpNoResult(t *testing.T) {
	inBubble(t, func(w *world) {
		const n = 40
		e := w.engine(twoSettlers{w.store, make(chan struct{}, 2)}, map[string]processor.Func{"b": nothing})
		ids := w.saveMany(e, "p", n)
		time.Sleep(100 * time.Millisecond)
		got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"p"}, Max: n, TTR: 3 * time.Second, Waits: true, Wait: time.Second})
		if err != nil || len(got) != n {
			w.Fatalf("%d tasks were popped: %v", len(got), err)
		}
		unlock := w.store.Lock(ids...)
		time.Sleep(6 * time.Second)
		w.unhindered(e)
		unlock()
		time.Sleep(10 * time.Second)
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Pending || r.Attempt != 1 {
				w.Errorf("a lease is not ended 10 s after the lock was: %+v", r)
			}
		}
	})
}

func TestChangesOfRowsThatAreLockedHoldUpNoResult(t *testing.T) {
	inBubble(t, func(w *world) {
		const n = 20
		e := w.engine(twoSettlers{w.store, make(chan struct{}, 2)}, map[string]processor.Func{"b": nothing})
		var ids []int64
		for range n {
			ids = append(ids, w.save(e, "p", time.Hour))
		}
		unlock := w.store.Lock(ids...)
		var cancelled atomic.Int64
		for _, id := range ids {
			go func() {
				if _, err := e.Cancel(w.Context(), nil, Ref{ID: id}, false); err == nil {
					cancelled.Add(1)
				}
			}()
		}
		time.Sleep(n * time.Second / 2) // each waits once, two at a time
		w.unhindered(e)
		unlock()
		time.Sleep(5 * time.Second)
		if cancelled.Load() != n {
			w.Errorf("%d of %d are cancelled after the lock", cancelled.Load(), n)
		}
	})
}

// More of them than a page are in front of the row that has to be rescued.
func TestLockedRowsHoldUpNoRescueBehindThem(t *testing.T) {
	inBubble(t, func(w *world) {
		now := row.At(time.Now())
		over := row.Row{
			Tag: "b", Status: row.Executing, Version: 1, Attempt: 1, MaxAttempts: 3, Executor: "host:1:gone:1", Due: now.Add(time.Second),
			Expected: now, TTR: time.Second, Body: []byte("{}"),
		}
		var ids []int64
		for i := range int64(7 * rescuePage) {
			over.ID = 1000 + i
			w.store.Plant(over)
			ids = append(ids, over.ID)
		}
		unlock := w.store.Lock(ids...)
		over.ID, over.Due = 99_999, now.Add(2*time.Second)
		w.store.Plant(over)
		w.engine(w.store, map[string]processor.Func{"b": nothing})
		time.Sleep(7 * time.Second)
		if w.row(over.ID).CrashCount != 1 {
			w.Error("its lease is not ended 5 s after it was over")
		}
		unlock()
		time.Sleep(10 * time.Second)
	})
}

func TestRowsThatArePutOffByHandKeepNoSlots(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		var ids []int64
		for range 64 {
			ids = append(ids, w.save(e, "a", 4*time.Second))
		}
		for _, id := range ids { // as somebody does who does not count the version up
			r := w.row(id)
			r.Expected, r.Due = r.Expected.Add(time.Hour), r.Due.Add(time.Hour)
			w.store.Plant(r)
		}
		time.Sleep(5 * time.Second)
		for _, id := range ids {
			if r := w.row(id); r.Status != row.Pending || r.Attempt != 0 {
				w.Fatalf("an hour before it is due: %+v", r)
			}
		}
		fresh := w.save(e, "a", time.Second)
		time.Sleep(2 * time.Second)
		w.completed(fresh, 5*time.Millisecond)
		time.Sleep(time.Hour)
		for _, id := range ids {
			w.completed(id, 5*time.Millisecond)
		}
	})
}

// slowReads answers late when asked to.
type slowReads struct {
	Store
	slow atomic.Bool
}

func (s *slowReads) States(ctx context.Context, ids []int64) ([]row.State, error) {
	states, err := s.Store.States(ctx, ids)
	if s.slow.Load() {
		time.Sleep(2 * time.Second)
	}
	return states, err
}

// The task is given back through another node as its lease ends, and popped here again while the alarm looks what became of it.
func TestAlarmOfAnEarlierPopLeavesTheNextOneAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		db := &slowReads{Store: w.store}
		e, other := w.engine(db, nil), w.engine(w.store, nil)
		id := w.save(e, "p", 0)
		time.Sleep(100 * time.Millisecond)
		pop := func(ttr time.Duration) *processor.Task {
			got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"p"}, Max: 1, TTR: ttr, Waits: true, Wait: 10 * time.Second})
			if err != nil || len(got) != 1 {
				w.Errorf("popped %d tasks: %v", len(got), err)
				return &processor.Task{}
			}
			return got[0]
		}
		first := pop(3 * time.Second)
		popped := time.Now()
		again := make(chan *processor.Task)
		go func() {
			time.Sleep(2900 * time.Millisecond)
			again <- pop(time.Minute)
		}()
		time.Sleep(time.Until(popped.Add(2950 * time.Millisecond)))
		db.slow.Store(true)
		if err := other.Release(w.Context(), first.ID, first.Version); err != nil {
			w.Fatal(err)
		}
		second := <-again
		time.Sleep(10 * time.Second)
		db.slow.Store(false)
		if r := w.row(id); r.Status != row.Executing || r.Version != second.Version {
			w.Errorf("the row was taken from its holder: %+v", r)
		}
		if err := e.Finish(w.Context(), second.ID, second.Version); err != nil {
			w.Error(err)
		}
	})
}

// A tag that gets half as much again as it can run, all the time. What was forgotten must have its turn all the same.
func TestOverdueRowsHaveTheirTurnWhileTheBacklogIsFull(t *testing.T) {
	inBubble(t, func(w *world) {
		w.stream(4, 20*time.Millisecond, 150)
		time.Sleep(5 * time.Second)
		due := row.At(time.Now().Add(-time.Hour))
		for id := range int64(10) {
			w.plain(1+id, "a", due)
		}
		time.Sleep(60 * time.Second)
		left := 0
		for id := range int64(10) {
			if w.row(1+id).Status != row.Completed {
				left++
			}
		}
		if left > 0 {
			w.Errorf("%d of 10 tasks that are an hour overdue have not run within a minute; 12000 younger ones have", left)
		}
	})
}

// The database refuses to complete one row, as a trigger of the users' may: results of other tasks are not stored either.
func TestResultThatIsRefusedForGoodHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		var bad atomic.Int64
		var healed atomic.Bool
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			for _, c := range changes {
				if c.ID == bad.Load() && !healed.Load() {
					return 0, classError(row.ClassCaller, "refused by a trigger")
				}
			}
			return w.store.Update(ctx, nil, changes)
		}}, map[string]processor.Func{"a": nothing, "b": nothing})
		time.Sleep(time.Second)
		bad.Store(w.save(e, "a", 100*time.Millisecond))
		time.Sleep(5 * time.Second)
		for range 3 {
			id := w.save(e, "b", 100*time.Millisecond)
			time.Sleep(10 * time.Second)
			if s := w.row(id).Status; s != row.Completed {
				w.Errorf("a neighbour is %v ten seconds after it ran", s)
			}
		}
		healed.Store(true)
		time.Sleep(20 * time.Second)
	})
}

// oneRenewer is a store with as many connections for renewals as the real one has.
type oneRenewer struct {
	Store
	conns chan struct{}
}

func (s oneRenewer) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	select {
	case s.conns <- struct{}{}:
	case <-ctx.Done():
		return nil, &row.Error{Class: row.ClassNotApplied, Op: "renew leases", Err: ctx.Err()}
	}
	defer func() { <-s.conns }()
	return s.Store.Renew(ctx, leases)
}

// Holders of popped tasks touch rows that a transaction holds; a processor elsewhere in the process loses its lease.
func TestTouchesOfLockedRowsCostNobodyHisLease(t *testing.T) {
	inBubble(t, func(w *world) {
		const n = 20
		lost := make(chan error, 1)
		e := w.engine(oneRenewer{w.store, make(chan struct{}, 1)}, map[string]processor.Func{
			"b": func(ctx context.Context, _ *processor.Task) error {
				select {
				case <-ctx.Done():
					lost <- context.Cause(ctx)
				case <-time.After(20 * time.Second):
					lost <- nil
				}
				return nil
			},
		})
		ids := w.saveMany(e, "p", n)
		time.Sleep(100 * time.Millisecond)
		got, err := e.Pop(w.Context(), PopRequest{Tags: []string{"p"}, Max: n, TTR: time.Minute, Waits: true, Wait: time.Second})
		if err != nil || len(got) != n {
			w.Fatalf("%d tasks were popped: %v", len(got), err)
		}
		w.save(e, "b", 0, processor.WithTTR(6*time.Second))
		time.Sleep(time.Second)
		unlock := w.store.Lock(ids...)
		var stop atomic.Bool
		for _, task := range got {
			go func() {
				for !stop.Load() {
					if err := e.Touch(w.Context(), task.ID, task.Version, time.Minute); errors.Is(err, processor.ErrLeaseLost) {
						w.Error(err)
					}
					time.Sleep(time.Second)
				}
			}()
		}
		if err := <-lost; err != nil {
			w.Errorf("a processor has lost its lease: %v", err)
		}
		stop.Store(true)
		unlock()
		time.Sleep(time.Minute)
	})
}

// Another node that asks whether rows are locked holds them for a moment.
func TestBulkChangeMeetsAMomentaryLock(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		var ids []int64
		for range 10 {
			ids = append(ids, w.save(e, "p", time.Hour))
		}
		e.locks.note()
		unlock := w.store.Lock(ids[3:5]...)
		time.AfterFunc(20*time.Millisecond, unlock)
		if n, err := e.CancelWhere(w.Context(), Bulk{Filter: row.Filter{Tag: "p"}}); n != 10 || err != nil {
			w.Errorf("%d of 10 tasks are cancelled: %v", n, err)
		}
	})
}

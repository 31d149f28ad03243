package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// remote is a store that a node may be cut off from: then calls fail at once, or hang for as long as their callers wait.
type remote struct {
	Store
	away, hangs atomic.Bool
	refused     atomic.Int64
}

func (s *remote) reach(ctx context.Context) error {
	if !s.away.Load() {
		return nil
	}
	s.refused.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
	}
	return &row.Error{Class: row.ClassNotApplied, Op: "reach the database", Err: errors.New("away")}
}

func (s *remote) Now(ctx context.Context) (answer row.Reading, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Now(ctx)
}

func (s *remote) Insert(ctx context.Context, tx Tx, rows []row.Row) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	return s.Store.Insert(ctx, tx, rows)
}

func (s *remote) Due(ctx context.Context, w row.Window) (answer []row.Due, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Due(ctx, w)
}

func (s *remote) States(ctx context.Context, ids []int64) (answer []row.State, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.States(ctx, ids)
}

func (s *remote) Claim(ctx context.Context, c row.Claim) (answer row.Claimed, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Claim(ctx, c)
}

func (s *remote) Renew(ctx context.Context, leases []row.Lease) (answer []row.State, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Renew(ctx, leases)
}

func (s *remote) Update(ctx context.Context, tx Tx, changes []row.Change) (answer int, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Update(ctx, tx, changes)
}

func (s *remote) Tags(ctx context.Context) (answer []row.TagState, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Tags(ctx)
}

func (s *remote) Beat(ctx context.Context, n row.Node) (answer bool, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Beat(ctx, n)
}

func (s *remote) Strays(ctx context.Context, prefix string, limit int) (answer []row.State, err error) {
	if err := s.reach(ctx); err != nil {
		return answer, err
	}
	return s.Store.Strays(ctx, prefix, limit)
}

func (s *remote) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	if err := s.reach(ctx); err != nil {
		return nil, row.Reading{}, err
	}
	return s.Store.Nodes(ctx)
}

// TestScanComesAgainAfterACallThatHung lets the scan ask while nobody answers, and looks for a row that only a scan can find.
func TestScanComesAgainAfterACallThatHung(t *testing.T) {
	inBubble(t, func(w *world) {
		store := &remote{Store: w.store}
		store.hangs.Store(true)
		w.engine(store, map[string]processor.Func{"a": nothing}, func(c *Config) { c.CallTimeout = 3 * time.Second })
		time.Sleep(7 * time.Second)
		store.away.Store(true)
		time.Sleep(20 * time.Second)
		store.away.Store(false)
		time.Sleep(10 * time.Second)
		w.plain(1, "a", row.At(time.Now().Add(-time.Minute)))
		time.Sleep(6 * time.Second)
		if r := w.row(1); r.Status != row.Completed {
			w.Errorf("what only the scan finds is %v after 6 s", r.Status)
		}
	})
}

func (s *remote) Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error) {
	if err := s.reach(ctx); err != nil {
		return nil, nil, err
	}
	return s.Store.Expired(ctx, limit)
}

func TestOutageIsWaitedForWithoutSpinning(t *testing.T) {
	for name, hangs := range map[string]bool{"Refused": false, "Hanging": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				store := &remote{Store: w.store}
				store.hangs.Store(hangs)
				e := w.engine(store, map[string]processor.Func{"a": untilEnd(20*time.Second, nil), "b": nothing},
					func(c *Config) { c.TTR = 2 * time.Minute })
				time.Sleep(5 * time.Second)
				var ids []int64
				for range 10 {
					ids = append(ids, w.save(e, "a", 0)) // its results fall into the outage
				}
				for i := range 100 {
					ids = append(ids, w.save(e, "b", time.Second+time.Duration(i)*300*time.Millisecond))
				}
				time.Sleep(500 * time.Millisecond)
				store.away.Store(true)
				const lasts = 60
				time.Sleep(lasts * time.Second)
				if calls := store.refused.Load(); calls > 40*lasts {
					w.Errorf("%d calls in an outage of %d s", calls, lasts)
				}
				if e.Ready(w.Context()) == nil {
					w.Error("it is ready without a database")
				}
				store.away.Store(false)
				time.Sleep(20 * time.Second)
				if e.Ready(w.Context()) != nil {
					w.Error("it is not ready although the database is back")
				}
				for _, id := range ids {
					if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 || r.CrashCount != 0 {
						w.Errorf("task %d after the outage: %v, attempt %d, %d crashes", id, r.Status, r.Attempt, r.CrashCount)
					}
				}
			})
		})
	}
}

// TestWhoFailedTogetherDoesNotComeBackTogether draws the waits of many processes whose calls were refused at one moment.
func TestWhoFailedTogetherDoesNotComeBackTogether(t *testing.T) {
	t.Parallel()
	const processes = 1000
	for n, want := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 1280, 2000, 2000} {
		want *= time.Millisecond
		waits := make([]time.Duration, processes)
		for i := range waits {
			waits[i] = pause(n)
		}
		slices.Sort(waits)
		if first, last := waits[0], waits[processes-1]; first < want/2 || last > want*3/2 {
			t.Errorf("repetition %d: waits of %v to %v, want half to one and a half times %v", n, first, last, want)
		}
		// Evenly drawn, a fifth of them comes back within a fifth of the time; half of that is far beyond chance.
		for i := 0; i+processes/5 < processes; i++ {
			if within := waits[i+processes/5] - waits[i]; within < want/10 {
				t.Errorf("repetition %d: a fifth of all comes back within %v of %v", n, within, want)
				break
			}
		}
	}
}

func TestNodeThatIsCutOffLosesWhatItHasAndComesBack(t *testing.T) {
	inBubble(t, func(w *world) {
		store := &remote{Store: w.store}
		store.hangs.Store(true)
		ends := make(chan error, 10)
		hold := func(ctx context.Context, _ *processor.Task) error {
			<-ctx.Done()
			ends <- context.Cause(ctx)
			return nil // as if it had succeeded
		}
		a := w.engine(store, map[string]processor.Func{"held": hold, "a": nothing},
			func(c *Config) { c.TTR, c.CallTimeout = 5*time.Second, 2*time.Second })
		time.Sleep(3 * time.Second)
		id := w.save(a, "held", 0)
		time.Sleep(100 * time.Millisecond)
		store.away.Store(true)
		lost := time.Now()
		w.engine(w.store, map[string]processor.Func{"held": nothing, "a": nothing})
		time.Sleep(15 * time.Second)
		runs := w.runs.of(id)
		if len(runs) != 2 || runs[1].at.Sub(lost) > 10*time.Second {
			w.Fatalf("the other node should have taken the task within TTR + 5 s: %+v", runs)
		}
		if cause := <-ends; !errors.Is(cause, processor.ErrLeaseLost) {
			w.Errorf("the context ended with %v", cause)
		}
		version := w.row(id).Version
		store.away.Store(false)
		time.Sleep(15 * time.Second)
		if r := w.row(id); r.Status != row.Completed || r.Version != version {
			w.Errorf("the late result changed the row: %+v", r)
		}
		if a.Ready(w.Context()) != nil {
			w.Error("the node is not ready again")
		}
		mine := 0
		for range 40 {
			later := w.save(a, "a", 10*time.Second)
			if a.arm.mine(later, w.row(later).Due, "a") {
				mine++
			}
		}
		if mine == 0 || mine == 40 {
			w.Errorf("back in the group the node arms %d of 40 tasks, want a share", mine)
		}
		time.Sleep(15 * time.Second)
	})
}

func TestTaskThatKillsItsProcessAmongTwoHundredOnThreeNodes(t *testing.T) {
	inBubble(t, func(w *world) {
		kill := make(chan *Engine, 3)
		stop := make(chan struct{})
		defer close(stop)
		join := func() {
			var e *Engine
			e = w.idle(w.store, map[string]processor.Func{
				"a":      untilEnd(300*time.Millisecond, nil),
				"poison": func(context.Context, *processor.Task) error { kill <- e; <-stop; return nil },
			}, func(c *Config) { c.TTR, c.Workers = 2*time.Second, 8 })
			if err := e.Start(w.Context()); err != nil {
				w.Fatal(err)
			}
		}
		for range 3 {
			join()
		}
		time.Sleep(3 * time.Second)
		producer := w.idle(w.store, nil)
		bad := w.save(producer, "poison", 3*time.Second)
		var good []int64
		for i := range 200 {
			good = append(good, w.save(producer, "a", 2*time.Second+time.Duration(i)*50*time.Millisecond))
		}
		for range 5 {
			w.crash(<-kill)
			join()
		}
		time.Sleep(time.Minute)
		if r := w.row(bad); r.Status != row.Failed || r.CrashCount != 5 || len(kill) != 0 {
			w.Errorf("the task that kills: %v, %d crashes", r.Status, r.CrashCount)
		}
		for _, id := range good {
			if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 {
				w.Errorf("a neighbour: %v, attempt %d, %d crashes", r.Status, r.Attempt, r.CrashCount)
			}
		}
	})
}

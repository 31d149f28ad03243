package overview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/report"
)

// slow is a store whose calls take a while, and that notes how many are made, and at once.
type slow struct {
	Store
	calls, running, most atomic.Int64
}

func (s *slow) take() func() {
	s.calls.Add(1)
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	time.Sleep(10 * time.Millisecond)
	return func() { s.running.Add(-1) }
}

func (s *slow) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	defer s.take()()
	return s.Store.Nodes(ctx)
}

func (s *slow) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	defer s.take()()
	return s.Store.Oldest(ctx, status)
}

func (s *slow) Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error) {
	defer s.take()()
	return s.Store.Count(ctx, pairs, most)
}

func (s *slow) Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error) {
	defer s.take()()
	return s.Store.Places(ctx, spans, limit)
}

func (s *slow) Rollups(
	ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time,
) ([]row.Rollup, error) {
	defer s.take()()
	return s.Store.Rollups(ctx, span, tags, from, to)
}

func (s *slow) CountDue(
	ctx context.Context, g row.DueGrid, most int, limit time.Duration,
) ([]row.DueCount, bool, error) {
	defer s.take()()
	return s.Store.CountDue(ctx, g, most, limit)
}

func (s *slow) Expired(ctx context.Context, tags []string, limit int) ([]row.Row, []row.Broken, error) {
	defer s.take()()
	return s.Store.Expired(ctx, tags, limit)
}

// quiet is a process that has nothing to tell.
func quiet() Process {
	return Process{
		Clock:   func() Clock { return Clock{Width: time.Millisecond} },
		Hanging: func() []Hanging { return nil },
	}
}

// reader returns one on a store, which is closed when the test ends.
func reader(t *testing.T, s Store, of Process) *Reader {
	t.Helper()
	r := New(Config{Store: s, Process: of})
	t.Cleanup(r.Close)
	return r
}

func TestOneReadingServesAHundredViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const viewers, span = 100, 5 * time.Minute
		mem := memstore.New()
		for tag := range 100 {
			insert(t, mem, row.Row{Tag: fmt.Sprint("t", tag), Due: at(mem, 30*time.Second)})
			insert(t, mem, row.Row{Tag: fmt.Sprint("t", tag), Due: at(mem, -time.Second), Status: row.Failed})
		}
		s := &slow{Store: mem}
		r := reader(t, s, quiet())
		var all sync.WaitGroup
		for range viewers {
			all.Go(func() {
				for range span / time.Second {
					if found, err := r.Snapshot(t.Context()); err != nil || found.Age >= freshFor {
						t.Errorf("got a snapshot of age %v and %v", found.Age, err)
					}
					time.Sleep(time.Second)
				}
			})
		}
		all.Wait()
		if n := s.calls.Load(); n > 5*int64(span/time.Second) || n < int64(span/freshFor) || s.most.Load() > 2 {
			t.Errorf("%d calls in %v, and %d at once", n, span, s.most.Load())
		}
		before := s.calls.Load()
		time.Sleep(time.Hour)
		if n := s.calls.Load() - before; n > 0 {
			t.Errorf("%d calls while no viewer asked", n)
		}
	})
}

func TestTheLastSnapshotIsShownWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Value
		away.Store(faultstore.Pass)
		s := faultstore.New(memstore.New(), func(faultstore.Call) faultstore.Mode {
			return away.Load().(faultstore.Mode)
		})
		r := reader(t, s, quiet())
		away.Store(faultstore.Before)
		if _, err := r.Snapshot(t.Context()); row.ClassOf(err) != row.ClassNotApplied {
			t.Fatalf("without any snapshot: %v", err)
		}
		away.Store(faultstore.Pass)
		time.Sleep(freshFor)
		if found, err := r.Snapshot(t.Context()); err != nil || found.Stale != "" {
			t.Fatalf("with a database: %+v, %v", found, err)
		}
		for mode, want := range map[faultstore.Mode]report.OverviewTrouble{
			faultstore.Before: report.TroubleDatabase, faultstore.Hang: report.TroubleTimeout,
		} {
			away.Store(mode)
			time.Sleep(freshFor)
			began := time.Now()
			found, err := r.Snapshot(t.Context())
			if err != nil || found.Stale != want || found.Age < freshFor || time.Since(began) > readLimit {
				t.Errorf("%v: %v, %v, %v after %v", mode, found.Stale, found.Age, err, time.Since(began))
			}
		}
		away.Store(faultstore.Pass)
		time.Sleep(freshFor)
		if found, err := r.Snapshot(t.Context()); err != nil || found.Stale != "" || found.Age > 0 {
			t.Errorf("with the database again: %v, %v, %v", found.Stale, found.Age, err)
		}
		ended, end := context.WithCancelCause(t.Context())
		cause := errors.New("the viewer has left")
		end(cause)
		away.Store(faultstore.Hang)
		time.Sleep(freshFor)
		if found, err := r.Snapshot(ended); err != nil || found.Stale != report.TroubleTimeout {
			t.Errorf("with an ended context: %v, %v", found.Stale, err)
		}
		first := reader(t, s, quiet())
		if _, err := first.Snapshot(ended); !errors.Is(err, cause) {
			t.Errorf("with an ended context and no snapshot: %v", err)
		}
		r.Close()
		if _, err := r.Snapshot(t.Context()); !errors.Is(err, delaytask.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A part that fails is missing by itself, with those that need it, and comes again.
func TestAPartThatFailsIsMissingByItself(t *testing.T) {
	for method, want := range map[string][]report.OverviewPart{
		"Count":   {report.PartCounts, report.PartDue, report.PartFailures},
		"Places":  {report.PartDue, report.PartFailures},
		"Expired": {report.PartLeases}, "Rollups": {report.PartHistory}, "Upcoming": {report.PartForecast},
	} {
		synctest.Test(t, func(t *testing.T) {
			var hangs atomic.Bool
			hangs.Store(true)
			mem := memstore.New()
			insert(t, mem, row.Row{Tag: "a", Due: at(mem, -time.Minute)})
			insert(t, mem, row.Row{Tag: "a", Due: at(mem, -time.Minute), Status: row.Failed})
			r := reader(t, faultstore.New(mem, func(c faultstore.Call) faultstore.Mode {
				if c.Method == method && hangs.Load() {
					return faultstore.Hang
				}
				return faultstore.Pass
			}), quiet())
			found, err := r.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			o := found.Overview(report.OverviewFilter{})
			missing := map[report.OverviewPart]bool{}
			for _, m := range o.Missing {
				missing[m.Part] = true
				if m.Why != report.TroubleTimeout {
					t.Errorf("%s hangs: %+v", method, m)
				}
			}
			for _, part := range want {
				if !missing[part] {
					t.Errorf("%s hangs: missing %v, want %v", method, o.Missing, want)
				}
			}
			if len(missing) != len(want) {
				t.Errorf("%s hangs: missing %v, want %v", method, o.Missing, want)
			}
			hangs.Store(false)
			time.Sleep(keepTimeout)
			found, err = r.Snapshot(t.Context())
			if o := found.Overview(report.OverviewFilter{}); err != nil || len(o.Missing) > 0 {
				t.Errorf("%s answers: %v, %v", method, o.Missing, err)
			}
		})
	}
}

var lastID int64

// at returns a moment on the clock of the store.
func at(s *memstore.Store, d time.Duration) row.Time {
	reading, _ := s.Now(context.Background()) // in memory
	return reading.Time.Add(d)
}

// insert saves a row, and gives it its status.
func insert(t *testing.T, s *memstore.Store, r row.Row) int64 {
	t.Helper()
	status, due := r.Status, r.Due
	lastID++
	r.ID, r.TTR, r.Status, r.Expected = lastID, time.Minute, row.Pending, r.Due
	if err := s.Insert(t.Context(), nil, []row.Row{r}); err != nil {
		t.Fatal(err)
	}
	if status == row.Pending {
		return r.ID
	}
	change := row.Change{
		ID: r.ID, From: row.Pending, To: status, Due: due, Expected: due, Executor: r.Executor,
		ErrorStack: r.ErrorStack,
	}
	if n, err := s.Update(t.Context(), nil, []row.Change{change}); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	return r.ID
}

// asked is a store that notes how many ranges of the index are read.
type asked struct {
	Store
	ranges atomic.Int64
}

func (a *asked) Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error) {
	a.ranges.Add(int64(len(spans)))
	return a.Store.Places(ctx, spans, limit)
}

func (a *asked) Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error) {
	a.ranges.Add(int64(len(pairs)))
	return a.Store.Count(ctx, pairs, most)
}

func TestAReadingOfVeryManyTagsIsBounded(t *testing.T) {
	const tags = 3000
	mem := memstore.New()
	for tag := range tags {
		of := func(status row.Status) row.Row {
			ago := time.Duration(tag+1) * 100 * time.Millisecond
			return row.Row{Tag: fmt.Sprint("t", tag), Due: at(mem, -ago), Status: status}
		}
		insert(t, mem, of(row.Pending))
		insert(t, mem, of(row.Pending))
		insert(t, mem, of(row.Failed))
	}
	s := &asked{Store: mem}
	found, err := reader(t, s, quiet()).Snapshot(t.Context())
	if n := s.ranges.Load(); err != nil || n > 5000 {
		t.Fatalf("%d ranges were read, %v", n, err)
	}
	for _, tag := range []struct {
		name  string
		tasks report.DueTasks
	}{
		{"t2999", report.DueTasks{Tasks: 2, Precision: report.Exact}}, // due first
		{"t0", report.DueTasks{Tasks: 1, Precision: report.AtLeast}},
	} {
		o := found.Overview(report.OverviewFilter{Sees: func(t string) bool { return t == tag.name }})
		if len(o.Tags) != 1 || o.Tags[0].Overdue != tag.tasks || o.Tags[0].OldestDue.IsZero() {
			t.Errorf("%s: %+v, want %+v overdue", tag.name, o.Tags, tag.tasks)
		}
	}
}

// A read of the leases enters the index for each tag.
func TestLeasesOfSilentProcessesAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		s := &site{T: t, Store: mem}
		for n := range 7 {
			token := fmt.Sprintf("%016x", n+1)
			s.join(n, token, "a")
			for range n {
				s.save("a", row.Executing, time.Hour, int64(n+1), "")
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		counted := &counted{Store: mem}
		r := reader(t, counted, quiet())
		for want := range int64(3) {
			found, err := r.Snapshot(t.Context())
			if n := counted.orphans.Load(); err != nil || n != want+1 {
				t.Fatalf("the leases are read %d times, %v", n, err)
			}
			held := map[int]int64{}
			for _, f := range found.Overview(report.OverviewFilter{}).Attention {
				if f.Code == report.FindingNodeSilent {
					held[f.Node.Number] = f.Number
				}
			}
			if !maps.Equal(held, map[int]int64{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6}) {
				t.Errorf("the processes hold %v", held)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

type counted struct {
	Store
	orphans atomic.Int64
}

func (c *counted) Orphans(ctx context.Context, tags []string, of []int64, limit int) ([]row.State, error) {
	c.orphans.Add(1)
	return c.Store.Orphans(ctx, tags, of, limit)
}

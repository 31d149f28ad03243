package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// What statements take at a server, about as MariaDB does.
const (
	readCost  = 150 * time.Microsecond
	writeCost = 300 * time.Microsecond // with one row
	rowCost   = 40 * time.Microsecond  // of each further row that is written
	entryCost = 500 * time.Nanosecond  // of each entry of the index that a read by due time passes
	staleCost = 2 * time.Microsecond   // of each entry that a claim has left there
	staleFor  = time.Second            // how long it is there
)

// server is a database of limited capacity. Statements wait for a worker in the order of their arrival. One whose
// caller has left costs as much as any other.
type server struct {
	workers chan struct{}
	slower  time.Duration // how many times longer than at a usual server each statement takes
	serving sync.WaitGroup

	mu      sync.Mutex
	stale   []entry
	settled int // rows
}

// entry is what is left in the index of a row that was claimed.
type entry struct {
	due   row.Time
	since time.Time
}

func newServer(workers int, slower time.Duration) *server {
	return &server{workers: make(chan struct{}, workers), slower: slower}
}

// serve makes a call when a worker is free, and keeps that for the cost of the answer.
func serve[T any](
	ctx context.Context, s *server, cost func(T) time.Duration, do func(context.Context) (T, error),
) (T, error) {
	type answer struct {
		value T
		err   error
	}
	served := make(chan answer, 1)
	s.serving.Go(func() {
		s.workers <- struct{}{}
		value, err := do(context.WithoutCancel(ctx))
		time.Sleep(s.slower * cost(value))
		<-s.workers
		served <- answer{value, err}
	})
	select {
	case a := <-served:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, &row.Error{Class: row.ClassUnknown, Op: "wait for the server", Err: ctx.Err()}
	}
}

func reading[T any](T) time.Duration { return readCost }

func writing[T any](rows int) func(T) time.Duration {
	return func(T) time.Duration { return writeCost + time.Duration(max(rows-1, 0))*rowCost }
}

// front is the server as a process sees it. What is not here costs nothing.
type front struct {
	store.Store
	*server
}

func (f *front) Now(ctx context.Context) (row.Reading, error) {
	return serve(ctx, f.server, reading, f.Store.Now)
}

func (f *front) Cluster(ctx context.Context, fresh time.Duration) (store.Cluster, error) {
	return serve(ctx, f.server, reading, func(ctx context.Context) (store.Cluster, error) {
		return f.Store.Cluster(ctx, fresh)
	})
}

func (f *front) Beat(ctx context.Context, n row.Node) (bool, error) {
	return serve(ctx, f.server, writing[bool](1), func(ctx context.Context) (bool, error) {
		return f.Store.Beat(ctx, n)
	})
}

func (f *front) States(ctx context.Context, ids []int64) ([]row.State, error) {
	return serve(ctx, f.server, reading, func(ctx context.Context) ([]row.State, error) {
		return f.Store.States(ctx, ids)
	})
}

func (f *front) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	return serve(ctx, f.server, reading, func(ctx context.Context) ([]row.TagCount, error) {
		return f.Store.Oldest(ctx, status)
	})
}

func (f *front) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	return serve(ctx, f.server, writing[[]row.State](len(leases)), func(ctx context.Context) ([]row.State, error) {
		return f.Store.Renew(ctx, leases)
	})
}

func (f *front) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	return serve(ctx, f.server, writing[row.Claimed](len(c.Rows)), func(ctx context.Context) (row.Claimed, error) {
		won, err := f.Store.Claim(ctx, c)
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range won.Rows {
			f.stale = append(f.stale, entry{won.Rows[i].Expected, time.Now()})
		}
		return won, err
	})
}

func (f *front) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	return serve(ctx, f.server, writing[int](len(changes)), func(ctx context.Context) (int, error) {
		n, err := f.Store.Update(ctx, tx, changes)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.settled += n
		return n, err
	})
}

// Due passes the rows of all nodes up to the last one that it returns, and what claims have left between them.
func (f *front) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	return serve(ctx, f.server, func(found []row.Due) time.Duration {
		passed, until := len(found), w.To
		if w.Share != nil {
			passed = passed * ids.HashSlots / max(1, w.Share.Slots())
		}
		if len(found) == w.Limit {
			until = found[len(found)-1].Due
		}
		return readCost + time.Duration(passed)*entryCost + time.Duration(f.staleIn(w.From, until))*staleCost
	}, func(ctx context.Context) ([]row.Due, error) { return f.Store.Due(ctx, w) })
}

func (s *server) staleIn(from, until row.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = slices.DeleteFunc(s.stale, func(e entry) bool { return time.Since(e.since) > staleFor })
	for _, e := range s.stale {
		if from <= e.due && e.due < until {
			n++
		}
	}
	return n
}

func (s *server) done() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled
}

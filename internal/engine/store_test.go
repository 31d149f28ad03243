package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// claimHook stands in for Claim.
type claimHook struct {
	store.Store
	hook func(ctx context.Context, c row.Claim) (row.Claimed, error)
}

func (s claimHook) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	return s.hook(ctx, c)
}

// renewHook stands in for Renew.
type renewHook struct {
	store.Store
	hook func(ctx context.Context, leases []row.Lease) ([]row.State, error)
}

func (s renewHook) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	return s.hook(ctx, leases)
}

// around lets calls pass through a hook, which may wait, refuse them, or lose their answers.
type around struct {
	store.Store
	hook func(ctx context.Context, call string, do func() error) error
}

// at lets the calls of one kind pass through a hook.
func at(store store.Store, call string, hook func(ctx context.Context, do func() error) error) around {
	return around{store, func(ctx context.Context, c string, do func() error) error {
		if c != call {
			return do()
		}
		return hook(ctx, do)
	}}
}

// slow answers the calls of one kind after a while.
func slow(store store.Store, call string, d time.Duration) around {
	return at(store, call, func(ctx context.Context, do func() error) error {
		if !lifecycle.Sleep(ctx, d) {
			return classError(row.ClassNotApplied, "given up")
		}
		return do()
	})
}

// crowded has n connections for the calls of one kind, as the real store has.
func crowded(store store.Store, call string, n int) around {
	conns := make(chan struct{}, n)
	return at(store, call, func(ctx context.Context, do func() error) error {
		select {
		case conns <- struct{}{}:
		case <-ctx.Done():
			return classError(row.ClassNotApplied, "no connection was free")
		}
		defer func() { <-conns }()
		return do()
	})
}

// distant is a round trip away for what tasks wait for.
func distant(store store.Store, roundTrip time.Duration) around {
	return around{store, func(_ context.Context, call string, do func() error) error {
		if slices.Contains([]string{"Insert", "Due", "Claim", "Update"}, call) {
			time.Sleep(roundTrip / 2)
			defer time.Sleep(roundTrip / 2)
		}
		return do()
	}}
}

// remote is a store that a node may be cut off from: then calls fail at once, or hang for as long as their callers
// wait.
type remote struct {
	around
	away, hangs atomic.Bool
	refused     atomic.Int64
}

func newRemote(store store.Store, hangs bool) *remote {
	r := &remote{}
	r.hangs.Store(hangs)
	r.around = around{store, func(ctx context.Context, _ string, do func() error) error {
		if !r.away.Load() {
			return do()
		}
		r.refused.Add(1)
		if r.hangs.Load() {
			<-ctx.Done()
		}
		return classError(row.ClassNotApplied, "away")
	}}
	return r
}

// passing makes the call of a store that returns one value, through the hook.
func passing[T any](ctx context.Context, s around, call string, do func() (T, error)) (answer T, err error) {
	err = s.hook(ctx, call, func() (err error) {
		answer, err = do()
		return err
	})
	return answer, err
}

func (s around) Now(ctx context.Context) (row.Reading, error) {
	return passing(ctx, s, "Now", func() (row.Reading, error) { return s.Store.Now(ctx) })
}

func (s around) Insert(ctx context.Context, tx store.Tx, rows []row.Row) error {
	return s.hook(ctx, "Insert", func() error { return s.Store.Insert(ctx, tx, rows) })
}

func (s around) Get(
	ctx context.Context, tx store.Tx, ids []int64,
) (rows []row.Row, broken []row.Broken, err error) {
	err = s.hook(ctx, "Get", func() (err error) {
		rows, broken, err = s.Store.Get(ctx, tx, ids)
		return err
	})
	return rows, broken, err
}

func (s around) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	return passing(ctx, s, "Due", func() ([]row.Due, error) { return s.Store.Due(ctx, w) })
}

func (s around) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	return passing(ctx, s, "Oldest", func() ([]row.TagCount, error) { return s.Store.Oldest(ctx, status) })
}

func (s around) Expired(
	ctx context.Context, tags []string, limit int,
) (rows []row.Row, broken []row.Broken, err error) {
	err = s.hook(ctx, "Expired", func() (err error) {
		rows, broken, err = s.Store.Expired(ctx, tags, limit)
		return err
	})
	return rows, broken, err
}

func (s around) Orphans(ctx context.Context, tags []string, processes []int64, limit int) ([]row.State, error) {
	return passing(
		ctx,
		s,
		"Orphans",
		func() ([]row.State, error) { return s.Store.Orphans(ctx, tags, processes, limit) },
	)
}

func (s around) States(ctx context.Context, ids []int64) ([]row.State, error) {
	return passing(ctx, s, "States", func() ([]row.State, error) { return s.Store.States(ctx, ids) })
}

func (s around) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	return passing(ctx, s, "Locked", func() ([]int64, error) { return s.Store.Locked(ctx, ids) })
}

func (s around) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	return passing(ctx, s, "Claim", func() (row.Claimed, error) { return s.Store.Claim(ctx, c) })
}

func (s around) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	return passing(ctx, s, "Renew", func() ([]row.State, error) { return s.Store.Renew(ctx, leases) })
}

func (s around) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	return passing(ctx, s, "Update", func() (int, error) { return s.Store.Update(ctx, tx, changes) })
}

func (s around) Tags(ctx context.Context) (tags []row.TagState, look row.Time, err error) {
	err = s.hook(ctx, "Tags", func() (err error) {
		tags, look, err = s.Store.Tags(ctx)
		return err
	})
	return tags, look, err
}

func (s around) Nodes(ctx context.Context) (nodes []row.Node, reading row.Reading, err error) {
	err = s.hook(ctx, "Nodes", func() (err error) {
		nodes, reading, err = s.Store.Nodes(ctx)
		return err
	})
	return nodes, reading, err
}

func (s around) Beat(ctx context.Context, n row.Node) (bool, error) {
	return passing(ctx, s, "Beat", func() (bool, error) { return s.Store.Beat(ctx, n) })
}

package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// bounded is the store as the passes of the scanner see it. A pass may last as long as there is something to do, so it has no end of
// its own; but each of its calls has: one that never got its answer would keep the pass from ever coming again.
type bounded struct {
	Store
	limit time.Duration
}

func (b bounded) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.Due(ctx, w)
}

func (b bounded) Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.Expired(ctx, limit)
}

func (b bounded) Strays(ctx context.Context, executorPrefix string, limit int) ([]row.State, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.Strays(ctx, executorPrefix, limit)
}

func (b bounded) States(ctx context.Context, ids []int64) ([]row.State, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.States(ctx, ids)
}

func (b bounded) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.Locked(ctx, ids)
}

func (b bounded) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.Update(ctx, tx, changes)
}

func (b bounded) Discard(ctx context.Context, broken []row.Broken) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.Discard(ctx, broken)
}

func (b bounded) Purge(ctx context.Context, status row.Status, before row.Time, limit int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return b.Store.Purge(ctx, status, before, limit)
}

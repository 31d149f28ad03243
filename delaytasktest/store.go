package delaytasktest

import (
	"context"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/memstore"
	"github.com/delaytask/delaytask/internal/row"
)

// store is the database in memory. It overlooks transactions: the caller's are ones of another database, or of none.
type store struct{ *memstore.Store }

func (s store) Insert(ctx context.Context, _ engine.Tx, rows []row.Row) error {
	return s.Store.Insert(ctx, nil, rows)
}

func (s store) Get(ctx context.Context, _ engine.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	return s.Store.Get(ctx, nil, ids)
}

func (s store) FindActive(ctx context.Context, _ engine.Tx, keys []row.TagKey) ([]row.Row, error) {
	return s.Store.FindActive(ctx, nil, keys)
}

func (s store) Update(ctx context.Context, _ engine.Tx, changes []row.Change) (int, error) {
	return s.Store.Update(ctx, nil, changes)
}

package memstore_test

import (
	"context"
	"testing"

	"github.com/delaytask/delaytask/internal/memstore"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Parallel()
		return memstore.New()
	})
}

func TestStoreBehavesLikeItsModel(t *testing.T) {
	storetest.Model(t, func(*testing.T) store.Store { return memstore.New() })
}

func TestStoreWaitsForNobodysLockForLong(t *testing.T) {
	storetest.RunLocks(t, func(t *testing.T) (store.Store, func(...int64) func()) {
		t.Parallel()
		s := memstore.New()
		return s, s.Lock
	})
}

func TestStoreSetsBrokenRowsApart(t *testing.T) {
	for name, spoil := range map[string]func(*row.Row){
		"Headers":    func(r *row.Row) { r.Headers = []byte("{") },
		"Errors":     func(r *row.Row) { r.Errors = []byte(`"text"`) },
		"LatePolicy": func(r *row.Row) { r.LatePolicy = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunBroken(t, func(t *testing.T) (store.Store, func(int64)) {
				s := memstore.New()
				return s, func(id int64) {
					rows, _, _ := s.Get(context.Background(), nil, []int64{id})
					spoil(&rows[0])
					s.Plant(rows[0])
				}
			})
		})
	}
}

package faultstore

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
)

// read is the answer of the methods that set broken rows apart.
type read struct {
	rows   []row.Row
	broken []row.Broken
}

// nothing is the answer of the methods that have none but an error.
type nothing struct{}

// Now implements [engine.Clock].
func (s *Store) Now(ctx context.Context) (row.Reading, error) {
	return call(ctx, s, "Now", s.inner.Now)
}

// InTransaction implements [engine.Saver].
func (s *Store) InTransaction(ctx context.Context, tx engine.Tx) (bool, error) {
	return call(ctx, s, "InTransaction", func(ctx context.Context) (bool, error) {
		return s.inner.InTransaction(ctx, tx)
	})
}

// Insert implements [engine.Saver].
func (s *Store) Insert(ctx context.Context, tx engine.Tx, rows []row.Row) error {
	_, err := call(ctx, s, "Insert", func(ctx context.Context) (nothing, error) {
		return nothing{}, s.inner.Insert(ctx, tx, rows)
	})
	return err
}

// Get implements [engine.Saver].
func (s *Store) Get(ctx context.Context, tx engine.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	got, err := call(ctx, s, "Get", func(ctx context.Context) (read, error) {
		rows, broken, err := s.inner.Get(ctx, tx, ids)
		return read{rows, broken}, err
	})
	return got.rows, got.broken, err
}

// FindActive implements [engine.Saver].
func (s *Store) FindActive(ctx context.Context, tx engine.Tx, keys []row.TagKey) ([]row.Row, error) {
	return call(ctx, s, "FindActive", func(ctx context.Context) ([]row.Row, error) {
		return s.inner.FindActive(ctx, tx, keys)
	})
}

// Due implements [engine.Finder].
func (s *Store) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	return call(ctx, s, "Due", func(ctx context.Context) ([]row.Due, error) { return s.inner.Due(ctx, w) })
}

// Expired implements [engine.Finder].
func (s *Store) Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error) {
	got, err := call(ctx, s, "Expired", func(ctx context.Context) (read, error) {
		rows, broken, err := s.inner.Expired(ctx, limit)
		return read{rows, broken}, err
	})
	return got.rows, got.broken, err
}

// Strays implements [engine.Finder].
func (s *Store) Strays(ctx context.Context, executorPrefix string, limit int) ([]row.State, error) {
	return call(ctx, s, "Strays", func(ctx context.Context) ([]row.State, error) {
		return s.inner.Strays(ctx, executorPrefix, limit)
	})
}

// States implements [engine.Finder].
func (s *Store) States(ctx context.Context, ids []int64) ([]row.State, error) {
	return call(ctx, s, "States", func(ctx context.Context) ([]row.State, error) { return s.inner.States(ctx, ids) })
}

// Locked implements [engine.Finder].
func (s *Store) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	return call(ctx, s, "Locked", func(ctx context.Context) ([]int64, error) { return s.inner.Locked(ctx, ids) })
}

// Claim implements [engine.Holder].
func (s *Store) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	return call(ctx, s, "Claim", func(ctx context.Context) (row.Claimed, error) { return s.inner.Claim(ctx, c) })
}

// Renew implements [engine.Holder].
func (s *Store) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	return call(ctx, s, "Renew", func(ctx context.Context) ([]row.State, error) { return s.inner.Renew(ctx, leases) })
}

// Update implements [engine.Holder].
func (s *Store) Update(ctx context.Context, tx engine.Tx, changes []row.Change) (int, error) {
	return call(ctx, s, "Update", func(ctx context.Context) (int, error) { return s.inner.Update(ctx, tx, changes) })
}

// Adopt implements [engine.Holder].
func (s *Store) Adopt(ctx context.Context, rows []row.Ref) error {
	_, err := call(ctx, s, "Adopt", func(ctx context.Context) (nothing, error) {
		return nothing{}, s.inner.Adopt(ctx, rows)
	})
	return err
}

// Discard implements [engine.Holder].
func (s *Store) Discard(ctx context.Context, broken []row.Broken) error {
	_, err := call(ctx, s, "Discard", func(ctx context.Context) (nothing, error) {
		return nothing{}, s.inner.Discard(ctx, broken)
	})
	return err
}

// Purge implements [engine.Keeper].
func (s *Store) Purge(ctx context.Context, status row.Status, before row.Time, limit int) (int, error) {
	return call(ctx, s, "Purge", func(ctx context.Context) (int, error) {
		return s.inner.Purge(ctx, status, before, limit)
	})
}

// Renumber implements [engine.Keeper]. It passes: the stores that faults are made for have nothing to do.
func (s *Store) Renumber(ctx context.Context, last int64, next func() int64, limit int) (int, string, error) {
	return s.inner.Renumber(ctx, last, next, limit)
}

// List implements [engine.Keeper].
func (s *Store) List(ctx context.Context, f row.Filter, bodies bool) ([]row.Row, []row.Broken, error) {
	got, err := call(ctx, s, "List", func(ctx context.Context) (read, error) {
		rows, broken, err := s.inner.List(ctx, f, bodies)
		return read{rows, broken}, err
	})
	return got.rows, got.broken, err
}

// Counts implements [engine.Keeper].
func (s *Store) Counts(ctx context.Context) ([]row.TagCount, error) {
	return call(ctx, s, "Counts", s.inner.Counts)
}

// Lateness implements [engine.Keeper].
func (s *Store) Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error) {
	return call(ctx, s, "Lateness", func(ctx context.Context) ([]row.Lateness, error) {
		return s.inner.Lateness(ctx, tags, since, perTag)
	})
}

// Tags implements [engine.Registry].
func (s *Store) Tags(ctx context.Context) ([]row.TagState, error) {
	return call(ctx, s, "Tags", s.inner.Tags)
}

// SetTag implements [engine.Registry].
func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	_, err := call(ctx, s, "SetTag", func(ctx context.Context) (nothing, error) {
		return nothing{}, s.inner.SetTag(ctx, t)
	})
	return err
}

// Nodes implements [engine.Registry].
func (s *Store) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	type answer struct {
		nodes   []row.Node
		reading row.Reading
	}
	got, err := call(ctx, s, "Nodes", func(ctx context.Context) (answer, error) {
		nodes, reading, err := s.inner.Nodes(ctx)
		return answer{nodes, reading}, err
	})
	return got.nodes, got.reading, err
}

// Join implements [engine.Registry].
func (s *Store) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	return call(ctx, s, "Join", func(ctx context.Context) (bool, error) { return s.inner.Join(ctx, n, staleAfter) })
}

// Beat implements [engine.Registry].
func (s *Store) Beat(ctx context.Context, n row.Node) (bool, error) {
	return call(ctx, s, "Beat", func(ctx context.Context) (bool, error) { return s.inner.Beat(ctx, n) })
}

// Leave implements [engine.Registry].
func (s *Store) Leave(ctx context.Context, tokens []string) error {
	_, err := call(ctx, s, "Leave", func(ctx context.Context) (nothing, error) {
		return nothing{}, s.inner.Leave(ctx, tokens)
	})
	return err
}

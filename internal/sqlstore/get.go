package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Now implements [store.Clock].
func (s *Store) Now(ctx context.Context) (row.Reading, error) {
	reading, err := readClock(ctx, s.dialect, s.db)
	return reading, classify("read the database's clock", err)
}

func readClock(ctx context.Context, d dialect, q queryer) (reading row.Reading, err error) {
	err = scan(ctx, q, "SELECT "+d.reading(), nil, func(r *record) (err error) {
		reading, err = r.reading()
		return err
	})
	return reading, err
}

// Get implements [store.Saver].
func (s *Store) Get(ctx context.Context, tx store.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	var found page
	query := "SELECT " + s.dialect.selectList(true) + " FROM " + table + " WHERE id IN (" + idList(ids) + ") ORDER BY id"
	err := scan(ctx, s.from(tx), query, nil, found.add)
	return found.rows, found.broken, classify("read tasks", err)
}

// FindActive implements [store.Saver].
func (s *Store) FindActive(ctx context.Context, tx store.Tx, keys []row.TagKey) ([]row.Row, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var found page
	query, args := s.dialect.findActive(keys)
	err := scan(ctx, s.from(tx), query, args, found.add)
	return found.rows, classify("find tasks by key", err)
}

func (d dialect) findActive(keys []row.TagKey) (string, []any) {
	args := make([]any, len(keys))
	for i, k := range keys {
		args[i] = d.activeKey(k)
	}
	return "SELECT " + d.selectList(true) + " FROM " + table + d.byKey +
		" WHERE active_key IN (" + marks(len(keys), "UNHEX(?)") + ") ORDER BY id", args
}

// activeKey computes the column active_key as the server does, in hexadecimal.
func (d dialect) activeKey(k row.TagKey) string {
	k = k.Scope()
	plain := []byte(k.Tag + "\x00" + k.Key)
	if !d.hashesKeys {
		return hex.EncodeToString(plain)
	}
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:])
}

// States implements [store.Finder].
func (s *Store) States(ctx context.Context, ids []int64) ([]row.State, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	states, err := statesOf(ctx, s.dialect, s.db, ids)
	return states, classify("read who holds tasks", err)
}

func sortedIDs[T any](items []T, id func(T) int64) []int64 {
	ids := make([]int64, len(items))
	for i, item := range items {
		ids[i] = id(item)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

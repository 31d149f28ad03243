package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var errNotFinal = errors.New("only tasks of a final status can be purged")

const (
	purgeTries = 20          // reads of one batch around locked rows
	heldFor    = time.Minute // how long a locked row is left out
	// mostHeld is how many locked rows of a place are left out. With more of them the whole place is.
	mostHeld = 1000
)

// purging is one batch of rows that a purge deletes. Keys name them.
type purging[K cmp.Ordered] struct {
	op     string
	lane   use
	old    func(context.Context) (map[K]place, error) // what is to be deleted, without what s.held has of the places
	names  func(keys []K, lock string) clause         // selects the keys of those that exist, and locks them
	delete func(keys []K) clause
}

// purge deletes a batch. Rows that another transaction has locked are left out, so one wait for them holds up no
// others. It returns how many were deleted.
func purge[K cmp.Ordered](ctx context.Context, s *Store, p purging[K]) (int, error) {
	places, err := p.old(ctx)
	if err != nil || len(places) == 0 {
		return 0, classify(p.op, err)
	}
	n, err := s.lanes[p.lane].execute(ctx, p.op, p.delete(slices.Sorted(maps.Keys(places))))
	if !isLocked(err) {
		return n, err
	}
	return purgeAround(ctx, s, p)
}

// purgeAround is purge for a batch in which a row was locked just now.
func purgeAround[K cmp.Ordered](ctx context.Context, s *Store, p purging[K]) (int, error) {
	for try := 1; ; try++ {
		places, err := p.old(ctx)
		if err != nil || len(places) == 0 {
			return 0, classify(p.op, err)
		}
		keys := slices.Sorted(maps.Keys(places)) // all writers lock rows in this order
		locked, err := locked(ctx, s, keys, p.names)
		if err != nil {
			return 0, err
		}
		for _, key := range locked {
			s.held.add(places[key], key)
		}
		if len(locked) > 0 && try < purgeTries {
			continue
		}
		keys = slices.DeleteFunc(keys, func(key K) bool { return slices.Contains(locked, key) })
		if len(keys) == 0 {
			return 0, nil
		}
		return s.lanes[p.lane].execute(ctx, p.op, p.delete(keys))
	}
}

// Purge implements [store.Keeper]. It finds rows tag by tag, because the index is ordered by due time only within a
// tag.
func (s *Store) Purge(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
	deleted int, left []string, err error) {
	const op = "purge tasks"
	if !status.Final() {
		return 0, nil, refusedTo(op, errNotFinal)
	}
	if limit <= 0 {
		return 0, tags, nil
	}
	deleted, err = purge(ctx, s, purging[int64]{
		op: op, lane: chores,
		old: func(ctx context.Context) (old map[int64]place, err error) {
			old, left, err = s.purgeable(ctx, status, tags, before, limit)
			return old, err
		},
		names:  s.own.selectByID,
		delete: func(ids []int64) clause { return s.dialect.purge(status, before, ids) },
	})
	return deleted, left, err
}

func (s *Store) purgeable(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
	old map[int64]place, left []string, err error) {
	old = map[int64]place{}
	for i, tag := range tags {
		at := place{table, tag}
		held, all := heldAt[int64](&s.held, at)
		if all {
			continue
		}
		query := s.dialect.purgeable(status, tag, before, held, limit-len(old))
		found, err := firsts[int64](ctx, s.db, query)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range found {
			old[id] = at
		}
		if len(old) >= limit {
			return old, tags[i:], nil
		}
	}
	return old, nil, nil
}

func (d dialect) purgeable(status row.Status, tag string, before row.Time, held []int64, limit int) clause {
	return clause{"SELECT id FROM " + table + d.byDue +
		" WHERE status = ? AND tag = ? AND due_time < ?" + without("id", idList(held)) +
		" ORDER BY due_time, id LIMIT ?",
		[]any{int64(status), tag, before, limit}}
}

func (d dialect) purge(status row.Status, before row.Time, ids []int64) clause {
	return d.deleteRows(table, "t.id IN ("+idList(ids)+") AND status = ? AND due_time < ?", int64(status), before)
}

// oldOf is purging.old for a table that is one place. query selects the keys, without the held ones.
func oldOf[K cmp.Ordered](s *Store, at place, query func(held []K) clause) func(context.Context) (map[K]place, error) {
	return func(ctx context.Context) (map[K]place, error) {
		held, all := heldAt[K](&s.held, at)
		if all {
			return nil, nil
		}
		keys, err := firsts[K](ctx, s.db, query(held))
		old := make(map[K]place, len(keys))
		for _, key := range keys {
			old[key] = at
		}
		return old, err
	}
}

// without is a condition that leaves out the values of a list, or nothing where the list is empty.
func without(column, list string) string {
	if list == "" {
		return ""
	}
	return " AND " + column + " NOT IN (" + list + ")"
}

// namesIn selects the keys of rows of a table.
func (d dialect) namesIn(from, key, where, lock string) clause {
	return clause{sql: "SELECT " + key + " AS held_key FROM " + from + " AS t" + d.byID + " WHERE " + where + lock}
}

// hashList writes hashes, which HEX has made, as a list of values.
func hashList(hashes []string) string {
	if len(hashes) == 0 {
		return ""
	}
	return "X'" + strings.Join(hashes, "', X'") + "'"
}

// place is where a purge deletes: a table, and the part of it whose rows are read together.
type place struct{ table, part string }

// held remembers the locked rows that purges have met. The zero value is ready.
type held struct {
	mu   sync.Mutex
	rows map[place]map[any]time.Time // by key: when they were met
}

func (h *held) add(at place, key any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rows == nil {
		h.rows = map[place]map[any]time.Time{}
	}
	if h.rows[at] == nil {
		h.rows[at] = map[any]time.Time{}
	}
	h.rows[at][key] = time.Now()
}

// heldAt returns the rows of the place that were locked lately, and whether these are so many that it is left out
// itself.
func heldAt[K cmp.Ordered](h *held, at place) (keys []K, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows := h.rows[at]
	maps.DeleteFunc(rows, func(_ any, met time.Time) bool { return time.Since(met) >= heldFor })
	if len(rows) == 0 {
		delete(h.rows, at)
		return nil, false
	}
	for key := range rows {
		keys = append(keys, key.(K))
	}
	slices.Sort(keys)
	return keys, len(rows) >= mostHeld
}

package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var errNotFinal = errors.New("only tasks of a final status can be purged")

const (
	purgeTries = 20          // reads of one batch around locked rows
	heldFor    = time.Minute // how long a locked row is left out
	// mostHeld is how many locked rows of a tag are left out. With more of them the whole tag is.
	mostHeld = 1000
)

// Purge implements [store.Keeper]. It finds rows tag by tag, because the index is ordered by due time only within a
// tag. Rows that another transaction has locked are left out, so one wait for them holds up no others.
func (s *Store) Purge(ctx context.Context, status row.Status, before row.Time, limit int) (int, error) {
	const op = "purge tasks"
	if !status.Final() {
		return 0, refusedTo(op, errNotFinal)
	}
	if limit <= 0 {
		return 0, nil
	}
	for try := 1; ; try++ {
		found, err := s.purgeable(ctx, status, before, limit)
		if err != nil || len(found) == 0 {
			return 0, classify(op, err)
		}
		ids := slices.Sorted(maps.Keys(found)) // all writers lock rows in this order
		if try == 1 {
			n, err := s.lanes[chores].execute(ctx, op, s.dialect.purge(status, before, ids))
			if !isLocked(err) {
				return n, err
			}
		}
		locked, err := s.Locked(ctx, ids)
		if err != nil {
			return 0, err
		}
		if len(locked) == 0 || try == purgeTries {
			ids = slices.DeleteFunc(ids, func(id int64) bool { return slices.Contains(locked, id) })
			if len(ids) == 0 {
				return 0, nil
			}
			return s.lanes[chores].execute(ctx, op, s.dialect.purge(status, before, ids))
		}
		for _, id := range locked {
			s.held.add(found[id], id)
		}
	}
}

// purgeable returns the tags of rows by their ids.
func (s *Store) purgeable(ctx context.Context, status row.Status, before row.Time, limit int) (
	tags map[int64]string, err error) {
	oldest, err := s.Oldest(ctx, status)
	if err != nil {
		return nil, err
	}
	tags = map[int64]string{}
	for _, of := range oldest {
		if of.Oldest >= before {
			continue
		}
		held, all := s.held.of(of.Tag)
		if all {
			continue
		}
		query := s.dialect.purgeable(status, of.Tag, before, held, limit-len(tags))
		found, err := firsts[int64](ctx, s.db, query)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			tags[id] = of.Tag
		}
		if len(tags) >= limit {
			break
		}
	}
	return tags, nil
}

func (d dialect) purgeable(status row.Status, tag string, before row.Time, held []int64, limit int) clause {
	without := ""
	if len(held) > 0 {
		without = " AND id NOT IN (" + idList(held) + ")"
	}
	return clause{"SELECT id FROM " + table + d.byDue +
		" WHERE status = ? AND tag = ? AND due_time < ?" + without + " ORDER BY due_time, id LIMIT ?",
		[]any{int64(status), tag, before, limit}}
}

func (d dialect) purge(status row.Status, before row.Time, ids []int64) clause {
	return d.deleteRows(table, "t.id IN ("+idList(ids)+") AND status = ? AND due_time < ?", int64(status), before)
}

// held remembers the locked rows that a purge has met. The zero value is ready.
type held struct {
	mu   sync.Mutex
	rows map[string]map[int64]time.Time // by tag: when they were met
}

func (h *held) add(tag string, id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rows == nil {
		h.rows = map[string]map[int64]time.Time{}
	}
	if h.rows[tag] == nil {
		h.rows[tag] = map[int64]time.Time{}
	}
	h.rows[tag][id] = time.Now()
}

// of returns the rows of the tag that were locked lately, and whether these are so many that it is left out itself.
func (h *held) of(tag string) (ids []int64, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows := h.rows[tag]
	maps.DeleteFunc(rows, func(_ int64, met time.Time) bool { return time.Since(met) >= heldFor })
	if len(rows) == 0 {
		delete(h.rows, tag)
		return nil, false
	}
	return slices.Sorted(maps.Keys(rows)), len(rows) >= mostHeld
}

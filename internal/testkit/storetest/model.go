package storetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Model runs random operations on a store and on a reference model, a plain map, and compares their answers. Only Model
// tests batches of rows that differ, refused batches, and filters in all combinations. It uses one store for all runs
// and empties it in between.
func Model(t *testing.T, open func(t *testing.T) store.Store) {
	tester := newTester(t, open(t))
	rapid.Check(t, func(rt *rapid.T) {
		tester.empty()
		m := &machine{T: rt, store: tester.store, ctx: t.Context(), rows: make(map[int64]row.Row), base: tester.now()}
		rt.Repeat(map[string]func(*rapid.T){
			"":           func(rt *rapid.T) { m.with(rt).allRows() },
			"insert":     func(rt *rapid.T) { m.with(rt).insert() },
			"claim":      func(rt *rapid.T) { m.with(rt).claim() },
			"renew":      func(rt *rapid.T) { m.with(rt).renew() },
			"update":     func(rt *rapid.T) { m.with(rt).update() },
			"adopt":      func(rt *rapid.T) { m.with(rt).adopt() },
			"discard":    func(rt *rapid.T) { m.with(rt).discard() },
			"purge":      func(rt *rapid.T) { m.with(rt).purge() },
			"due":        func(rt *rapid.T) { m.with(rt).due() },
			"expired":    func(rt *rapid.T) { m.with(rt).expired() },
			"places":     func(rt *rapid.T) { m.with(rt).places() },
			"match":      func(rt *rapid.T) { m.with(rt).match() },
			"findActive": func(rt *rapid.T) { m.with(rt).findActive() },
		})
	})
}

// empty makes every row final and deletes it.
func (t *tester) empty() {
	t.Helper()
	for {
		var changes []row.Change
		for _, r := range t.all() {
			c := change(r, row.Cancelled)
			c.Due = row.MinTime
			changes = append(changes, c)
		}
		if len(changes) == 0 {
			return
		}
		t.apply(changes...)
		_, err := t.store.Purge(t.Context(), row.Cancelled, row.MaxTime, 1000)
		t.must(err)
	}
}

// Generators have state, so parallel runs do not share them.

func someIDs() *rapid.Generator[int64]   { return rapid.Int64Range(1, 8) }
func someTags() *rapid.Generator[string] { return rapid.SampledFrom([]string{"a", "A", "b"}) }
func someKeys() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "", "k", "k ", "s3:k"})
}

func someStatuses() *rapid.Generator[row.Status] { return rapid.SampledFrom(statuses) }

// someOffsets are hours away from the present, so that the model need not know the time by the second. Two of them are
// only just apart.
func someOffsets() *rapid.Generator[time.Duration] {
	return rapid.SampledFrom([]time.Duration{
		-2 * time.Hour, -time.Hour, -time.Hour + time.Microsecond, 24 * time.Hour, 48 * time.Hour,
	})
}

func (m *machine) someTime(label string) row.Time { return m.base.Add(someOffsets().Draw(m.T, label)) }

// someRef names a row, as a rule at the version it has.
func (m *machine) someRef() row.Ref {
	id := someIDs().Draw(m.T, "id")
	stale := rapid.SampledFrom([]int64{0, 0, 0, 0, -1, 1}).Draw(m.T, "version off by")
	return row.Ref{ID: id, Version: max(0, m.rows[id].Version+stale)}
}

// someRefs names different rows.
func (m *machine) someRefs() []row.Ref {
	refs := make([]row.Ref, rapid.IntRange(1, 4).Draw(m.T, "rows"))
	for i := range refs {
		refs[i] = m.someRef()
	}
	slices.SortFunc(refs, func(a, b row.Ref) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(refs, func(a, b row.Ref) bool { return a.ID == b.ID })
}

// carrier returns the id of the unfinished row that has r's key, or 0.
func carrier(rows map[int64]row.Row, r row.Row) int64 {
	if r.Key == "" {
		return 0
	}
	for id, other := range rows {
		sameName := other.Key == r.Key && (other.Tag == r.Tag || strings.HasPrefix(r.Key, "s3:"))
		if id != r.ID && sameName && !other.Status.Final() {
			return id
		}
	}
	return 0
}

// matching returns the rows of the model that match, ordered by id.
func (m *machine) matching(match func(row.Row) bool) []row.Row {
	var found []row.Row
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		if r := m.rows[id]; match(r) {
			found = append(found, r)
		}
	}
	return found
}

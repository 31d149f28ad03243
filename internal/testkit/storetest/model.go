package storetest

import (
	"testing"

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
		_, _, err := t.store.Purge(t.Context(), row.Cancelled, tagsWith(t, t.store, row.Cancelled), row.MaxTime, 1000)
		t.must(err)
	}
}

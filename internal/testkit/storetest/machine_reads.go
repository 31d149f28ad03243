package storetest

import (
	"cmp"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

// read returns what the store holds under all ids that the machine uses.
func (m *machine) read() map[int64]row.Row {
	m.Helper()
	rows, broken, err := m.store.Get(m.ctx, nil, []int64{1, 2, 3, 4, 5, 6, 7, 8})
	m.must(err)
	if len(broken) != 0 {
		m.Fatalf("broken rows %v", broken)
	}
	found := make(map[int64]row.Row)
	for _, r := range rows {
		found[r.ID] = r
	}
	return found
}

func (m *machine) allRows() {
	found := m.read()
	if len(found) != len(m.rows) {
		m.Fatalf("the store has %v, the model %v", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(m.rows)))
	}
	for id, want := range m.rows {
		m.equal(found[id], want)
	}
}

func (m *machine) due() {
	w := row.Window{Tags: rapid.SliceOfN(someTags(), 0, 3).Draw(m.T, "tags"), To: m.someTime("to")}
	w.Limit = rapid.IntRange(1, 5).Draw(m.T, "limit")
	w.AfterID = rapid.Int64Range(0, 8).Draw(m.T, "after")
	if rapid.Bool().Draw(m.T, "has a lower end") {
		w.From = m.someTime("from")
	}
	want := m.matching(func(r row.Row) bool {
		return r.Status == row.Pending && slices.Contains(w.Tags, r.Tag) &&
			(r.Due > w.From || r.Due == w.From && r.ID > w.AfterID) && (r.Due.IsZero() || r.Due < w.To)
	})
	slices.SortFunc(want, func(a, b row.Row) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	want = want[:min(w.Limit, len(want))]
	got, err := m.store.Due(m.ctx, w)
	m.must(err)
	if !slices.EqualFunc(got, want, func(d row.Due, r row.Row) bool { return d == r.Sighting() }) {
		m.Fatalf("window %+v: got %+v, want %+v", w, got, want)
	}
}

func (m *machine) expired() {
	rows, _, err := m.store.Expired(m.ctx, 100)
	m.must(err)
	if !slices.IsSortedFunc(rows, func(a, b row.Row) int { return cmp.Compare(a.Due, b.Due) }) {
		m.Fatalf("expired rows are not ordered by their leases: %+v", rows)
	}
	want := m.matching(func(r row.Row) bool { return r.Status == row.Executing && !r.Due.IsZero() && r.Due < m.base })
	if got := slices.Sorted(slices.Values(idsOf(rows))); !slices.Equal(got, idsOf(want)) {
		m.Fatalf("expired %v, want %v", got, idsOf(want))
	}
}

func (m *machine) list() {
	f := row.Filter{Limit: rapid.IntRange(1, 9).Draw(m.T, "limit"), AfterID: rapid.Int64Range(0, 8).Draw(m.T, "after")}
	if rapid.Bool().Draw(m.T, "by tag") {
		f.Tag = someTags().Draw(m.T, "tag")
	}
	if rapid.Bool().Draw(m.T, "by status") {
		status := someStatuses().Draw(m.T, "status")
		f.Status = &status
	}
	f.Key = someKeys().Draw(m.T, "key")
	if rapid.Bool().Draw(m.T, "by due time") {
		f.DueBefore = m.someTime("due before")
	}
	want := m.matching(func(r row.Row) bool {
		return r.ID > f.AfterID && (f.Tag == "" || f.Tag == r.Tag) && (f.Status == nil || *f.Status == r.Status) &&
			(f.Key == "" || f.Key == r.Key) && (f.DueBefore.IsZero() || !r.Due.IsZero() && r.Due < f.DueBefore)
	})
	want = want[:min(f.Limit, len(want))]
	got, _, err := m.store.List(m.ctx, f, true)
	m.must(err)
	if !slices.Equal(idsOf(got), idsOf(want)) {
		m.Fatalf("filter %+v: got %v, want %v", f, idsOf(got), idsOf(want))
	}
	for i := range got {
		m.equal(got[i], want[i])
	}
}

func (m *machine) counts() {
	found, err := m.store.Counts(m.ctx)
	m.must(err)
	type line struct {
		tag    string
		status row.Status
	}
	want := make(map[line]row.TagCount)
	for _, r := range m.rows {
		at := line{r.Tag, r.Status}
		c := want[at]
		c.Tag, c.Status, c.Count = r.Tag, r.Status, c.Count+1
		if c.Oldest.IsZero() || !r.Due.IsZero() && r.Due < c.Oldest {
			c.Oldest = r.Due
		}
		want[at] = c
	}
	got := make(map[line]row.TagCount)
	for _, c := range found {
		got[line{c.Tag, c.Status}] = c
	}
	if !maps.Equal(got, want) {
		m.Fatalf("counts %v, want %v", found, want)
	}
}

func (m *machine) findActive() {
	keys := rapid.SampledFrom([]string{"k", "k ", "s3:k"})
	name := row.TagKey{Tag: someTags().Draw(m.T, "tag"), Key: keys.Draw(m.T, "key")}
	rows, err := m.store.FindActive(m.ctx, nil, []row.TagKey{name})
	m.must(err)
	want := carrier(m.rows, row.Row{Tag: name.Tag, Key: name.Key})
	if want == 0 && len(rows) == 0 {
		return
	}
	if len(rows) != 1 || rows[0].ID != want {
		m.Fatalf("%+v is carried by %v, want %d", name, idsOf(rows), want)
	}
}

package storetest

import (
	"cmp"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

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
	if of := rapid.IntRange(1, 5).Draw(m.T, "of"); of > 1 {
		w.Share = new(row.Share)
		for slot := rapid.IntRange(0, of-1).Draw(m.T, "at"); slot < ids.HashSlots; slot += of {
			w.Share.Add(slot)
		}
	}
	w.Lacking = rapid.Bool().Draw(m.T, "lacking")
	want := m.matching(func(r row.Row) bool {
		after := r.Due > w.From || r.Due == w.From && r.ID > w.AfterID
		if r.Due.IsZero() && !w.From.IsZero() {
			after = w.Lacking
		}
		return r.Status == row.Pending && slices.Contains(w.Tags, r.Tag) && w.Has(r.ID) && after &&
			(r.Due.IsZero() || r.Due < w.To)
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
	rows, _, err := m.store.Expired(m.ctx, tagsWith(m.T, m.store, row.Executing), 100)
	m.must(err)
	if !slices.IsSortedFunc(rows, func(a, b row.Row) int { return cmp.Compare(a.Due, b.Due) }) {
		m.Fatalf("expired rows are not ordered by their leases: %+v", rows)
	}
	want := m.matching(func(r row.Row) bool { return r.Status == row.Executing && !r.Due.IsZero() && r.Due < m.base })
	if got := slices.Sorted(slices.Values(idsOf(rows))); !slices.Equal(got, idsOf(want)) {
		m.Fatalf("expired %v, want %v", got, idsOf(want))
	}
}

func (m *machine) places() {
	span := row.Span{Status: someStatuses().Draw(m.T, "status"), Tag: someTags().Draw(m.T, "tag"),
		Down: rapid.Bool().Draw(m.T, "down")}
	if rapid.Bool().Draw(m.T, "from") {
		span.From = m.someTime("from")
	}
	if rapid.Bool().Draw(m.T, "to") {
		span.To = m.someTime("to")
	}
	if rapid.Bool().Draw(m.T, "after") {
		span.After = &row.Place{ID: rapid.Int64Range(0, 8).Draw(m.T, "after id")}
		if rapid.Bool().Draw(m.T, "after due") {
			span.After.Due = m.someTime("due")
		}
	}
	limit := rapid.IntRange(1, 5).Draw(m.T, "limit")
	got, err := m.store.Places(m.ctx, []row.Span{span}, limit)
	m.must(err)
	rows := m.matching(func(row.Row) bool { return true })
	if want := placesOf(rows, span, limit); len(got) != 1 || !slices.Equal(got[0], want) {
		m.Fatalf("span %+v: got %v, want %v", span, got, want)
	}
}

// placesOf is what [store.Lister] promises of Places, in the simplest words.
func placesOf(rows []row.Row, span row.Span, limit int) (want []row.Place) {
	for _, r := range rows {
		at := row.Place{Due: r.Due, ID: r.ID}
		beyond := span.After == nil || at.Compare(*span.After) > 0
		if span.Down && span.After != nil {
			beyond = at.Compare(*span.After) < 0
		}
		bounded := !span.From.IsZero() || !span.To.IsZero()
		within := r.Due >= span.From && (span.To.IsZero() || r.Due < span.To) && (!bounded || !r.Due.IsZero())
		if r.Status == span.Status && r.Tag == span.Tag && beyond && within {
			want = append(want, at)
		}
	}
	slices.SortFunc(want, row.Place.Compare)
	if span.Down {
		slices.Reverse(want)
	}
	return want[:min(limit, len(want))]
}

func (m *machine) match() {
	asked := row.Match{Key: someKeys().Draw(m.T, "key")}
	if rapid.Bool().Draw(m.T, "by tag") {
		asked.Tag = someTags().Draw(m.T, "tag")
	}
	if rapid.Bool().Draw(m.T, "by status") {
		asked.Status = new(someStatuses().Draw(m.T, "status"))
	}
	if rapid.Bool().Draw(m.T, "by due time") {
		asked.To = m.someTime("to")
	}
	want := m.matching(func(r row.Row) bool {
		return (asked.Tag == "" || asked.Tag == r.Tag) && (asked.Status == nil || *asked.Status == r.Status) &&
			(asked.Key == "" || asked.Key == r.Key) && (asked.To.IsZero() || !r.Due.IsZero() && r.Due < asked.To)
	})
	sized, err := m.store.Match(m.ctx, []int64{1, 2, 3, 4, 5, 6, 7, 8}, asked, false)
	m.must(err)
	ids := make([]int64, len(sized))
	for i, s := range sized {
		ids[i] = s.ID
	}
	if !slices.Equal(ids, idsOf(want)) {
		m.Fatalf("%+v matches %v, want %v", asked, ids, idsOf(want))
	}
	got, _, err := m.store.Rows(m.ctx, ids, true)
	m.must(err)
	for i := range want {
		m.equal(got[i], want[i])
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

package storetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// machine does each operation to the store and to the model.
type machine struct {
	*rapid.T
	ctx    context.Context
	store  store.Store
	base   row.Time // the moment that the due times are chosen around
	rows   map[int64]row.Row
	claims int64 // gives every claim an executor of its own
}

// with makes the operations draw from, and fail, the action that is running.
func (m *machine) with(t *rapid.T) *machine {
	m.T = t
	return m
}

func (m *machine) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("the store failed: %v (class %v)", err, row.ClassOf(err))
	}
}

func (m *machine) now() row.Time {
	m.Helper()
	reading, err := m.store.Now(m.ctx)
	m.must(err)
	return reading.Time
}

func (m *machine) at(ref row.Ref, status row.Status) (row.Row, bool) {
	r, ok := m.rows[ref.ID]
	return r, ok && r.Version == ref.Version && r.Status == status
}

// about returns what the store wrote from its clock, if it is near the model's time.
func (m *machine) about(got, want row.Time) row.Time {
	m.Helper()
	if apart := got.Sub(want).Abs(); apart > time.Minute {
		m.Fatalf("the store wrote %v, want about %v", got, want)
	}
	return got
}

// equal compares all columns but create_time and update_time. An empty body equals none.
func (m *machine) equal(got, want row.Row) {
	m.Helper()
	sameBody := bytes.Equal(got.Body, want.Body)
	got.Created, got.Updated, got.Body, want.Body = 0, 0, nil, nil
	if !sameBody || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		m.Fatalf("task %d (same body: %v):\n got %s\nwant %s", want.ID, sameBody, show(got), show(want))
	}
}

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

func (m *machine) someReason() delaytask.LateReason {
	return rapid.SampledFrom([]delaytask.LateReason{"", delaytask.LateSlot, delaytask.LateProcess}).Draw(m.T, "late")
}

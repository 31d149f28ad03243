package memstore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

func TestIndexAgreesWithASortedSlice(t *testing.T) {
	entries := rapid.Custom(func(t *rapid.T) row.Place {
		due := rapid.IntRange(0, 50).Draw(t, "due")
		return row.Place{Due: row.Time(due), ID: rapid.Int64Range(1, 50).Draw(t, "id")}
	})
	rapid.Check(t, func(t *rapid.T) {
		var x index
		var want []row.Place
		for _, e := range rapid.SliceOfNDistinct(entries, 0, 3*blockSize, rapid.ID[row.Place]).Draw(t, "inserted") {
			x.insert(e)
			want = append(want, e)
		}
		for _, e := range rapid.SliceOfN(entries, 0, 3*blockSize).Draw(t, "removed") {
			x.remove(e)
			want = slices.DeleteFunc(want, func(w row.Place) bool { return w == e })
		}
		slices.SortFunc(want, row.Place.Compare)

		if got := slices.Collect(x.after(row.Place{})); !slices.Equal(got, want) || x.len() != len(want) {
			t.Fatalf("got %d entries %v, want %d: %v", x.len(), got, len(want), want)
		}
		bound := entries.Draw(t, "bound")
		later := slices.DeleteFunc(slices.Clone(want), func(e row.Place) bool { return e.Compare(bound) <= 0 })
		if got := slices.Collect(x.after(bound)); !slices.Equal(got, later) {
			t.Fatalf("after %v: got %v, want %v", bound, got, later)
		}
		slices.Reverse(want)
		if got := slices.Collect(x.backward()); !slices.Equal(got, want) {
			t.Fatalf("backward: got %v, want %v", got, want)
		}
	})
}

func TestIndexCrossesItsBlocks(t *testing.T) {
	var x index
	const n = 20 * blockSize
	for i := range int64(n) {
		x.insert(row.Place{ID: (i*7919)%n + 1})
	}
	want := int64(0)
	for e := range x.after(row.Place{}) {
		if want++; e.ID != want {
			t.Fatalf("got id %d, want %d", e.ID, want)
		}
	}
	if want != n || len(x.blocks) < 20 {
		t.Fatalf("walked %d entries of %d in %d blocks", want, n, len(x.blocks))
	}
	for i := range int64(n) {
		x.remove(row.Place{ID: (i*104729)%n + 1})
	}
	if len(x.blocks) != 0 {
		t.Fatalf("%d blocks are left of an empty index", len(x.blocks))
	}
}

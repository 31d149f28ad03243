package memstore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

func TestIndexAgreesWithASortedSlice(t *testing.T) {
	entries := rapid.Custom(func(t *rapid.T) entry {
		return entry{row.Time(rapid.IntRange(0, 50).Draw(t, "due")), rapid.Int64Range(1, 50).Draw(t, "id")}
	})
	rapid.Check(t, func(t *rapid.T) {
		var x index
		var want []entry
		for _, e := range rapid.SliceOfNDistinct(entries, 0, 3*blockSize, rapid.ID[entry]).Draw(t, "inserted") {
			x.insert(e)
			want = append(want, e)
		}
		for _, e := range rapid.SliceOfN(entries, 0, 3*blockSize).Draw(t, "removed") {
			x.remove(e)
			want = slices.DeleteFunc(want, func(w entry) bool { return w == e })
		}
		slices.SortFunc(want, entry.compare)

		if got := slices.Collect(x.after(entry{})); !slices.Equal(got, want) || x.len() != len(want) {
			t.Fatalf("got %d entries %v, want %d: %v", x.len(), got, len(want), want)
		}
		bound := entries.Draw(t, "bound")
		later := slices.DeleteFunc(slices.Clone(want), func(e entry) bool { return e.compare(bound) <= 0 })
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
		x.insert(entry{id: (i*7919)%n + 1})
	}
	want := int64(0)
	for e := range x.after(entry{}) {
		if want++; e.id != want {
			t.Fatalf("got id %d, want %d", e.id, want)
		}
	}
	if want != n || len(x.blocks) < 20 {
		t.Fatalf("walked %d entries of %d in %d blocks", want, n, len(x.blocks))
	}
	for i := range int64(n) {
		x.remove(entry{id: (i*104729)%n + 1})
	}
	if len(x.blocks) != 0 {
		t.Fatalf("%d blocks are left of an empty index", len(x.blocks))
	}
}

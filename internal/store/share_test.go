package store

import (
	"database/sql"
	"testing"
)

func TestEveryKindOfWriteHasAConnection(t *testing.T) {
	for n := fewest; n <= len(turns); n++ {
		open := 0
		for kind, l := range share(n, func(size int) *lane { open += size; return &lane{slots: make(chan *sql.Conn, size)} }) {
			if l == nil {
				t.Errorf("of %d connections none is for kind %d", n, kind)
			}
		}
		if open != n {
			t.Errorf("%d connections are shared out, want %d", open, n)
		}
	}
	sizes := map[use]int{saves: 5, keyedSaves: 4, claims: 3, results: 2, renewals: 2, beats: 1, probes: 1, chores: 1}
	for kind, l := range share(len(turns), func(size int) *lane { return &lane{slots: make(chan *sql.Conn, size)} }) {
		if want := sizes[use(kind)]; cap(l.slots) != want {
			t.Errorf("kind %d has %d connections, want %d", kind, cap(l.slots), want)
		}
	}
}

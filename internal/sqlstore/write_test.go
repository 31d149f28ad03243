package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestAWriteIsRepeatedUntilItsOutcomeIsKnown(t *testing.T) {
	f := func(want int, classes ...row.Class) {
		t.Helper()
		calls := 0
		err := repeat(t.Context(), func() error {
			calls++
			if calls > len(classes) {
				return nil
			}
			return &row.Error{Class: classes[calls-1], Op: "write", Err: errors.New("failed")}
		})
		if known := calls > len(classes); calls != want || known != (err == nil) {
			t.Errorf("%v: %d calls, %v; want %d", classes, calls, err, want)
		}
	}
	f(1)
	f(2, row.ClassUnknown)
	f(2, row.ClassNotApplied)
	f(3, row.ClassUnknown, row.ClassDuplicate)
	f(3, row.ClassUnknown, row.ClassUnknown, row.ClassUnknown)
	f(1, row.ClassCaller)
	f(1, row.ClassLocked) // it has waited for a second by then
	f(2, row.ClassUnknown, row.ClassOperator)

	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := repeat(ctx, func() error {
		calls++
		cancel()
		return context.Canceled
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d calls after the context has ended, %v", calls, err)
	}
}

// Between the read of a purge and its DELETE an operator may retry the task, or the retried task may fail anew.
func TestPurgeDeletesNoTaskThatHasChangedMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := migrated(t, d)
		s := New(db, kind)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		due := row.MinTime + 1
		if err := s.Insert(t.Context(), nil, []row.Row{{ID: 1 << 40, Tag: "a", Expected: due, Due: due}}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			status row.Status
			before row.Time
			want   int
		}{{row.Failed, due + 1, 0}, {row.Pending, due, 0}, {row.Pending, due + 1, 1}} {
			query, args := s.own.purge(c.status, c.before, []int64{1 << 40})
			if n, err := execute(t.Context(), db, query, args); n != c.want || err != nil {
				t.Errorf("a purge of %v tasks before %v deletes %d, %v; want %d", c.status, c.before, n, err, c.want)
			}
		}
	})
}

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

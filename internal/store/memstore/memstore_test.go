package memstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Parallel()
		return memstore.New()
	})
}

func TestStoreBehavesLikeItsModel(t *testing.T) {
	storetest.Model(t, func(*testing.T) store.Store { return memstore.New() })
}

func TestStoreWaitsForALockOnce(t *testing.T) {
	storetest.RunLocks(t, time.Second, func(t *testing.T) (store.Store, func(...int64) func()) {
		t.Parallel()
		s := memstore.New()
		return s, s.Lock
	})
}

func TestStoreReportsBrokenRows(t *testing.T) {
	for name, spoil := range map[string]func(*row.Row){
		"Headers":    func(r *row.Row) { r.Headers = []byte("{") },
		"Errors":     func(r *row.Row) { r.Errors = []byte(`"text"`) },
		"LatePolicy": func(r *row.Row) { r.LatePolicy = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunBroken(t, func(t *testing.T) (store.Store, func(int64)) {
				s := memstore.New()
				return s, func(id int64) {
					rows, _, _ := s.Get(context.Background(), nil, []int64{id})
					spoil(&rows[0])
					s.Plant(rows[0])
				}
			})
		})
	}
}

func task(id int64) row.Row { return row.Row{ID: id, Tag: "a", TTR: time.Minute} }

func reading(t *testing.T, s *memstore.Store) row.Reading {
	t.Helper()
	r, err := s.Now(t.Context())
	must(t, err)
	return r
}

func TestClockIsTheBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		before := reading(t, s)
		time.Sleep(48 * time.Hour)
		if passed := reading(t, s).Time.Sub(before.Time); passed != 48*time.Hour {
			t.Fatalf("%v passed, want two days", passed)
		}
	})
}

func TestClockCanBeGivenAndStepped(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 1999, time.UTC)
	s := memstore.New(memstore.WithClock(func() time.Time { return at }))
	s.SetServer("first")
	truncated := row.At(at.Truncate(time.Microsecond))
	if got, want := reading(t, s), (row.Reading{Time: truncated, Server: "first"}); got != want {
		t.Fatalf("got %v, want %v: never rounded up", got, want)
	}
	s.SetOffset(-5 * time.Second)
	s.SetServer("second")
	if got, want := reading(t, s), (row.Reading{Time: truncated.Add(-5 * time.Second), Server: "second"}); got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestLockedRowDelaysAClaimByOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		must(t, s.Insert(t.Context(), nil, []row.Row{task(1)}))
		claim := row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: row.Executor{Process: 9, Claim: 1}}

		unlock := s.Lock(1)
		begun := time.Now()
		_, err := s.Claim(t.Context(), claim)
		if took := time.Since(begun); row.ClassOf(err) != row.ClassLocked || took != time.Second {
			t.Fatalf("after %v: %v, want it locked after a second", took, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begun = time.Now()
		_, err = s.Claim(ctx, claim)
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != 300*time.Millisecond {
			t.Fatalf("after %v: %v, want the caller's deadline", took, err)
		}

		time.AfterFunc(400*time.Millisecond, unlock)
		begun = time.Now()
		claimed, err := s.Claim(t.Context(), claim)
		if took := time.Since(begun); err != nil || len(claimed.Rows) != 1 || took != 400*time.Millisecond {
			t.Fatalf("after %v: %v, want the row as soon as the lock ended", took, err)
		}
	})
}

func TestLockEndsWithItsLastUnlock(t *testing.T) {
	s := memstore.New()
	first, second := s.Lock(1, 2), s.Lock(2)
	first()
	first()
	if locked, err := s.Locked(t.Context(), []int64{1, 2}); err != nil || len(locked) != 1 || locked[0] != 2 {
		t.Fatalf("locked %v, %v, want 2", locked, err)
	}
	second()
	if locked, err := s.Locked(t.Context(), []int64{1, 2}); err != nil || len(locked) != 0 {
		t.Fatalf("locked %v, %v, want none", locked, err)
	}
}

func TestTransactionsAreRefused(t *testing.T) {
	s := memstore.New()
	tx := new(sql.Tx)
	_, _, get := s.Get(t.Context(), tx, []int64{1})
	_, find := s.FindActive(t.Context(), tx, nil)
	_, update := s.Update(t.Context(), tx, nil)
	for _, err := range []error{s.Insert(t.Context(), tx, []row.Row{task(1)}), get, find, update} {
		if err == nil || row.ClassOf(err) != row.ClassCaller {
			t.Errorf("got %v, want the caller told that there are no transactions", err)
		}
	}
}

func TestRowOfUnknownStatusIsBrokenUntilItIsDiscarded(t *testing.T) {
	s := memstore.New()
	planted := task(1)
	planted.Status, planted.Version = 77, 5
	s.Plant(planted)
	_, broken, err := s.Get(t.Context(), nil, []int64{1})
	if err != nil || len(broken) != 1 || broken[0].Status != 77 || broken[0].Version != 5 {
		t.Fatalf("got %+v, %v, want the row broken", broken, err)
	}
	_, err = s.Discard(t.Context(), broken)
	must(t, err)
	rows, _, err := s.Get(t.Context(), nil, []int64{1})
	if err != nil || len(rows) != 1 || rows[0].Status != row.Failed || rows[0].Version != 6 {
		t.Fatalf("got %+v, %v, want the row failed", rows, err)
	}
}

func TestWatchIsCalledForEveryChange(t *testing.T) {
	var seen []string
	s := memstore.New(memstore.WithWatch(func(r row.Row, now row.Time) {
		seen = append(seen, fmt.Sprintf("%d@%d %v", r.ID, r.Version, r.Status))
		if now.IsZero() {
			t.Error("the time is zero")
		}
	}))
	must(t, s.Insert(t.Context(), nil, []row.Row{task(1), task(2)}))
	_ = s.Insert(t.Context(), nil, []row.Row{task(3), task(1)}) // refused, so nothing is seen
	must(t, one(s.Claim(t.Context(), row.Claim{
		Rows: []row.Ref{{ID: 1}, {ID: 2, Version: 7}}, Executor: row.Executor{Process: 9, Claim: 1}})))
	must(t, one(s.Renew(t.Context(), []row.Lease{{Ref: row.Ref{ID: 1, Version: 1}, TTR: time.Minute}})))
	done := row.Change{ID: 1, Version: 1, From: row.Executing, To: row.Completed}
	if n, err := s.Update(t.Context(), nil, []row.Change{done, done}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	want := []string{"1@0 pending", "2@0 pending", "1@1 executing", "1@1 executing", "1@2 completed"}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one[A any](_ A, err error) error { return err }

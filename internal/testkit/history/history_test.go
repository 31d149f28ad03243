package history_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/history"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/storetest"
)

func task(id int64) row.Row { return row.Row{ID: id, Tag: "a", TTR: time.Minute} }

var e, f = row.Executor{Process: 9, Claim: 1}, row.Executor{Process: 9, Claim: 2}

// said is one event in short.
func said(of journal.Event) string {
	executor := strings.NewReplacer(e.String(), "e", f.String(), "f").Replace(of.Executor)
	return fmt.Sprintf("%s %d v%d %s %s %s%s", of.Kind, of.ID, of.Version, of.Status, executor, of.Detail, of.Error)
}

func expect(t *testing.T, book *journal.Memory, want ...string) {
	t.Helper()
	events := book.Events()
	*book = journal.Memory{}
	if len(events) != len(want) {
		t.Fatalf("got %d events, want %d: %v", len(events), len(want), events)
	}
	for i, e := range events {
		if got := said(e); got != want[i] {
			t.Errorf("event %d is %q, want %q", i, got, want[i])
		}
		joined := e.Op == events[0].Op || e.Kind == journal.StoreRead || e.Kind == journal.StoreReturn
		if !joined || e.Node != "n" || e.At.IsZero() {
			t.Errorf("event %d: %+v", i, e)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCallsAndReturnsAreRecorded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var book journal.Memory
	s := history.New(memstore.New(), "n", 1, book.Append)

	must(t, s.Insert(ctx, nil, []row.Row{task(1)}))
	expect(t, &book, "store.insert 1 v0   ", "store.return 1 v0   ")

	if err := s.Insert(ctx, nil, []row.Row{task(1), task(2)}); row.ClassOf(err) != row.ClassDuplicate {
		t.Fatal(err)
	}
	expect(t, &book, "store.insert 1 v0   ", "store.insert 2 v0   ",
		"store.return 1 v0   unknown", "store.return 2 v0   unknown")

	_, err := s.Claim(ctx, row.Claim{Rows: []row.Ref{{ID: 1}, {ID: 2}}, Executor: e})
	must(t, err)
	expect(t, &book, "store.claim 1 v0  e ", "store.claim 2 v0  e ",
		"store.return 1 v1   ", "store.return 2 v0   wrong_status")

	_, err = s.Renew(ctx, []row.Lease{{Ref: row.Ref{ID: 1, Version: 1}, TTR: time.Minute, Executor: f}})
	must(t, err)
	expect(t, &book, "store.renew 1 v1  f ", "store.read 1 v0   ",
		"store.return 1 v1 executing f ", "store.return 1 v0   wrong_status")

	decide := row.Decision{Write: row.WriteNew, Schedule: row.Schedule{ID: 1, Name: "s"}, Insert: []row.Row{task(9)},
		Changes: []row.Change{{ID: 7, To: row.Cancelled}}}
	_, err = s.Decide(ctx, []row.Decision{decide})
	must(t, err)
	expect(t, &book, "store.change 7 v0 pending  cancelled", "store.insert 9 v0   ",
		"store.return 7 v0   unknown", "store.return 9 v0   unknown")
	decide.Changes = nil
	_, err = s.Decide(ctx, []row.Decision{decide})
	must(t, err)
	expect(t, &book, "store.insert 9 v0   ", "store.return 9 v0   ")

	done := row.Change{ID: 1, Version: 1, From: row.Executing, To: row.Completed, Executor: f}
	_, err = s.Update(ctx, nil, []row.Change{done})
	must(t, err)
	expect(t, &book, "store.change 1 v1 executing f completed", "store.return 1 v0   ")

	rescue := done
	rescue.LeaseOver, rescue.ID = true, 2
	_, err = s.Update(ctx, nil, []row.Change{done, rescue})
	must(t, err)
	expect(t, &book, "store.change 1 v1 executing f completed", "store.change 2 v1 executing f completed",
		"store.return 1 v0   wrong_status", "store.return 2 v0   unknown")

	_, err = s.States(ctx, []int64{1, 2})
	must(t, err)
	_, _, err = s.Get(ctx, nil, []int64{1})
	must(t, err)
	expect(t, &book, "store.read 1 v0   ", "store.read 2 v0   ",
		"store.return 1 v2 completed f ", "store.return 2 v0   ",
		"store.read 1 v0   ", "store.return 1 v2 completed f ")

	_, err = s.Discard(ctx, []row.Broken{{Ref: row.Ref{ID: 1, Version: 2}, Status: row.Completed, Reason: "r"}})
	must(t, err)
	expect(t, &book, "store.change 1 v2 completed  failed", "store.return 1 v0   wrong_status")
}

func TestWhatFailsIsRecordedAsItIsTold(t *testing.T) {
	t.Parallel()
	for mode, want := range map[faultstore.Mode]journal.Class{
		faultstore.Before: journal.Refused, faultstore.After: journal.Unknown,
	} {
		var book journal.Memory
		all := func(faultstore.Call) faultstore.Mode { return mode }
		s := history.New(faultstore.New(memstore.New(), all), "n", 1, book.Append)
		ctx := t.Context()
		change := row.Change{ID: 1, From: row.Pending, To: row.Cancelled}
		_, claim := s.Claim(ctx, row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: e})
		_, update := s.Update(ctx, nil, []row.Change{change})
		_, renew := s.Renew(ctx, []row.Lease{{Ref: row.Ref{ID: 1}, Executor: e}})
		_, states := s.States(ctx, []int64{1})
		_, _, get := s.Get(ctx, nil, []int64{1})
		_, discard := s.Discard(ctx, []row.Broken{{Ref: row.Ref{ID: 1}}})
		insert := s.Insert(ctx, nil, []row.Row{task(1)})
		for i, err := range []error{insert, claim, update, renew, states, get, discard} {
			if err == nil {
				t.Errorf("call %d has not failed", i)
			}
		}
		reads := map[string]bool{}
		for _, e := range book.Events() {
			switch {
			case e.Kind == journal.StoreRead:
				reads[e.Op] = true
			case e.Kind == journal.StoreReturn && reads[e.Op] && e.Error != journal.Refused:
				t.Errorf("%v: a read that failed has seen %+v", mode, e)
			case e.Kind == journal.StoreReturn && !reads[e.Op] && e.Error != want:
				t.Errorf("%v: got %+v, want %s", mode, e, want)
			}
		}
	}
}

// takesTx is a store whose callers' transactions take everything.
type takesTx struct{ *memstore.Store }

func (takesTx) Insert(context.Context, store.Tx, []row.Row) error { return nil }

func (takesTx) Update(_ context.Context, _ store.Tx, changes []row.Change) (int, error) {
	return len(changes), nil
}

func TestWhatHappensInATransactionIsUnknown(t *testing.T) {
	t.Parallel()
	ctx, tx := t.Context(), new(sql.Tx)
	var book journal.Memory
	s := history.New(takesTx{memstore.New()}, "n", 1, book.Append)
	must(t, s.Insert(ctx, tx, []row.Row{task(1)}))
	expect(t, &book, "store.insert 1 v0   ", "store.return 1 v0   unknown")
	_, err := s.Update(ctx, tx, []row.Change{{ID: 1, To: row.Cancelled}})
	must(t, err)
	expect(t, &book, "store.change 1 v0 pending  cancelled", "store.return 1 v0   unknown")
	if _, _, err := s.Get(ctx, tx, []int64{1}); err == nil {
		t.Error("the store in memory has read in a transaction")
	}
	expect(t, &book)
}

func TestTheSameShareOfTasksIsRecordedEverywhere(t *testing.T) {
	t.Parallel()
	seen := [2]map[int64]bool{{}, {}}
	for i, name := range []string{"n", "m"} {
		var book journal.Memory
		s := history.New(memstore.New(), name, 8, book.Append)
		for id := range int64(4000) {
			must(t, s.Insert(t.Context(), nil, []row.Row{task(id + 1)}))
		}
		for _, e := range book.Events() {
			seen[i][e.ID] = true
		}
	}
	if n := len(seen[0]); n < 300 || n > 700 || !maps.Equal(seen[0], seen[1]) {
		t.Errorf("%d and %d tasks of 4000 are recorded, want the same 500 or so", n, len(seen[1]))
	}
}

func TestARecordedStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store {
		return history.New(memstore.New(), "n", 1, new(journal.Memory).Append)
	})
}

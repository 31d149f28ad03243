package faultstore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/storetest"
)

func TestWithoutAPlanItIsTheInnerStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Parallel()
		return faultstore.New(memstore.New())
	})
}

func task(id int64) row.Row { return row.Row{ID: id, Tag: "a", TTR: time.Minute} }

func stored(t *testing.T, s store.Store, id int64) bool {
	t.Helper()
	rows, _, err := s.Get(t.Context(), nil, []int64{id})
	if err != nil {
		t.Fatal(err)
	}
	return len(rows) == 1
}

func TestModesOfAnInsert(t *testing.T) {
	for _, c := range []struct {
		mode      faultstore.Mode
		class     row.Class
		took      time.Duration
		then, now bool // stored when the call returned, and in the end
	}{
		{faultstore.Before, row.ClassNotApplied, 0, false, false},
		{faultstore.After, row.ClassUnknown, 0, true, true},
		{faultstore.Hang, row.ClassUnknown, time.Second, false, false},
		{faultstore.Late, row.ClassUnknown, time.Second, false, true},
		{faultstore.Twice, row.ClassDuplicate, 0, true, true},
	} {
		for _, overLink := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, over a link %t", c.mode, overLink), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					inner, link := memstore.New(), slow(time.Microsecond, time.Microsecond)
					s := faultstore.New(inner, faultstore.Method("Insert", 2, c.mode))
					if overLink {
						s.Over(link)
					}
					if err := s.Insert(t.Context(), nil, []row.Row{task(1)}); err != nil {
						t.Fatalf("the call before the fault: %v", err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					begun := time.Now()
					err := s.Insert(ctx, nil, []row.Row{task(2)})
					if err == nil || row.ClassOf(err) != c.class {
						t.Errorf("class %v, want %v: %v", row.ClassOf(err), c.class, err)
					}
					if took := time.Since(begun).Truncate(time.Millisecond); took != c.took {
						t.Errorf("took %v, want %v", took, c.took)
					}
					then := c.then || overLink && c.mode == faultstore.Late // which is late by when it was sent
					if got := stored(t, inner, 2); got != then {
						t.Errorf("stored %v when the call returned, want %v", got, then)
					}
					s.Wait()
					time.Sleep(time.Second)
					if got := stored(t, inner, 2); got != c.now {
						t.Errorf("stored %v in the end, want %v", got, c.now)
					}
					if err := s.Insert(t.Context(), nil, []row.Row{task(3)}); err != nil {
						t.Errorf("the call after the fault: %v", err)
					}
					if s.Faults() != 1 || s.Calls() != 3 || s.CallsOf("Insert") != 3 {
						t.Errorf("%d faults in %d calls, %d inserts", s.Faults(), s.Calls(), s.CallsOf("Insert"))
					}
					link.End() // ends what waits for an answer
				})
			})
		}
	}
}

func TestEveryCallOfAScenarioFailsOnce(t *testing.T) {
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.After} {
		n := 1
		for ; ; n++ {
			s := faultstore.New(memstore.New(), faultstore.Nth(n, mode))
			failed := 0
			for _, err := range scenario(t.Context(), s) {
				if err != nil {
					failed++
				}
			}
			if failed != s.Faults() {
				t.Errorf("%v of call %d: %d calls failed by %d faults", mode, n, failed, s.Faults())
			}
			if s.Faults() == 0 {
				break
			}
		}
		if n != 4 {
			t.Errorf("%v: the scenario ran through at n = %d, want 4", mode, n)
		}
	}
}

// scenario makes three calls whose success does not hang on each other.
func scenario(ctx context.Context, s store.Store) []error {
	insert := s.Insert(ctx, nil, []row.Row{task(1)})
	_, claim := s.Claim(ctx, row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: row.Executor{Process: 9, Claim: 1}})
	return []error{insert, claim, s.SetTag(ctx, row.TagState{Tag: "a"})}
}

func TestTheFirstPlanThatActsDecides(t *testing.T) {
	s := faultstore.New(memstore.New(),
		faultstore.Method("Beat", 0, faultstore.After),
		faultstore.Method("Tags", 0, faultstore.After),
		faultstore.Nth(1, faultstore.Before))
	for range 2 {
		if _, _, err := s.Tags(t.Context()); err == nil || row.ClassOf(err) != row.ClassUnknown {
			t.Errorf("got %v, want the reply lost each time", err)
		}
	}
}

func TestCallThatIsNotDoneAtItsDeadlineIsCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New()
		s := faultstore.New(inner, faultstore.Method("Insert", 1, faultstore.Hang))
		defer inner.Lock(7)()
		for want := range 2 { // the planned fault first
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if want == 0 {
				_ = s.Insert(ctx, nil, []row.Row{task(1)})
			} else {
				_, _ = s.Renew(ctx, []row.Lease{{Ref: row.Ref{ID: 7}, TTR: time.Minute}})
			}
			if s.Cut() != want || s.Faults() != 1 {
				t.Errorf("%d calls were cut and %d met a fault, want %d and 1", s.Cut(), s.Faults(), want)
			}
		}
	})
}

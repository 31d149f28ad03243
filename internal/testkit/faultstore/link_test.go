package faultstore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/storetest"
)

func TestOverAnOpenLinkItIsTheInnerStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		t.Parallel()
		return faultstore.New(memstore.New()).Over(faultstore.NewLink(nil))
	})
}

func slow(there, back time.Duration) *faultstore.Link {
	return faultstore.NewLink(func(faultstore.Call) (time.Duration, time.Duration) { return there, back })
}

// TestFaultsOfALink inserts a row over a link that takes a second each way, with a deadline of three seconds. After a
// while something happens to the link, until five seconds after it began.
func TestFaultsOfALink(t *testing.T) {
	for _, c := range []struct {
		name      string
		happens   func(*faultstore.Link)
		after     time.Duration
		err       bool
		took      time.Duration
		then, now bool // stored when the call returned, and in the end
	}{
		{"nothing", func(*faultstore.Link) {}, 0, false, 2 * time.Second, true, true},
		{"a cut before the call is sent", (*faultstore.Link).Cut, 0, true, 3 * time.Second, false, false},
		{"a cut on the way", (*faultstore.Link).Cut, 500 * time.Millisecond, true, 3 * time.Second, false, false},
		{"a cut on the way back", (*faultstore.Link).Cut, 1500 * time.Millisecond, true, 3 * time.Second, true, true},
		{"a hold before the call is sent", (*faultstore.Link).Hold, 0, true, 3 * time.Second, false, true},
		{"a hold on the way back", (*faultstore.Link).Hold, 1500 * time.Millisecond, true, 3 * time.Second, true, true},
		{"a crash before the call is sent", (*faultstore.Link).End, 0, true, 0, false, false},
		{"a crash on the way", (*faultstore.Link).End, 500 * time.Millisecond, true, 2 * time.Second, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, link := memstore.New(), slow(time.Second, time.Second)
				s := faultstore.New(inner).Over(link)
				if c.after == 0 {
					c.happens(link)
				} else {
					time.AfterFunc(c.after, func() { c.happens(link) })
				}
				time.AfterFunc(5*time.Second, link.Restore)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				begun := time.Now()
				err := s.Insert(ctx, nil, []row.Row{task(1)})
				if (err != nil) != c.err || err != nil && row.ClassOf(err) != row.ClassUnknown {
					t.Errorf("got %v", err)
				}
				if took := time.Since(begun); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if got := stored(t, inner, 1); got != c.then {
					t.Errorf("stored %v when the call returned, want %v", got, c.then)
				}
				time.Sleep(10 * time.Second)
				if got := stored(t, inner, 1); got != c.now {
					t.Errorf("stored %v in the end, want %v", got, c.now)
				}
			})
		})
	}
}

func TestACallThatWaitsForALockOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New()
		if err := inner.Insert(t.Context(), nil, []row.Row{task(1)}); err != nil {
			t.Fatal(err)
		}
		s := faultstore.New(inner).Over(slow(time.Millisecond, time.Millisecond))
		time.AfterFunc(500*time.Millisecond, inner.Lock(1))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		_, err := s.Claim(ctx, row.Claim{Executor: row.Executor{Process: 9, Claim: 1}, Rows: []row.Ref{{ID: 1}}})
		if took := time.Since(begun); row.ClassOf(err) != row.ClassUnknown || took != 100*time.Millisecond {
			t.Errorf("got %v after %v", err, took)
		}
		time.Sleep(time.Second)
		states, err := inner.States(t.Context(), []int64{1})
		if err != nil || len(states) != 1 || states[0].Executor != (row.Executor{Process: 9, Claim: 1}) {
			t.Errorf("got %+v, %v", states, err)
		}
	})
}

func TestCallsThatWaitAtACutFailWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, link := memstore.New(), slow(0, 0)
		s := faultstore.New(inner, faultstore.Method("Insert", 1, faultstore.Hang)).Over(link)
		time.AfterFunc(time.Second, link.Cut)
		time.AfterFunc(2*time.Second, link.Restore)
		if err := s.Insert(t.Context(), nil, []row.Row{task(1)}); row.ClassOf(err) != row.ClassUnknown {
			t.Errorf("got %v", err)
		}
		time.Sleep(500 * time.Millisecond)
		if err := s.Insert(t.Context(), nil, []row.Row{task(2)}); row.ClassOf(err) != row.ClassUnknown {
			t.Errorf("got %v", err)
		}
		if err := s.Insert(t.Context(), nil, []row.Row{task(3)}); err != nil {
			t.Errorf("over the restored link: %v", err)
		}
		if stored(t, inner, 1) || stored(t, inner, 2) || !stored(t, inner, 3) {
			t.Error("want only the third row stored")
		}
	})
}

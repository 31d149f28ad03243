package storetest

import (
	"sync"
	"sync/atomic"

	"github.com/delaytask/delaytask/internal/row"
)

var raceTests = []test{
	{"Of fifty claimers one wins", func(t *tester) {
		t.insertTasks(plain, 1)
		winner := t.oneWins(50, func(i int) (bool, error) {
			claimed, err := t.store.Claim(t.Context(), row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: claimer(i)})
			return len(claimed.Rows) == 1, err
		})
		if got := t.get(1); got.Executor != claimer(winner) || got.Version != 1 || got.Attempt != 1 {
			t.Fatalf("claimer %d has won, the row says %s", winner, show(got))
		}
	}},
	{"Of many saves with one key one is stored", func(t *tester) {
		winner := t.oneWins(20, func(i int) (bool, error) {
			err := t.store.Insert(t.Context(), nil, []row.Row{t.keyed(int64(i+1), "a", "k")})
			if err != nil && row.ClassOf(err) == row.ClassDuplicate {
				return false, nil
			}
			return err == nil, err
		})
		t.holdsIDs(int64(winner + 1))
	}},
	{"Of many nodes one gets the number", func(t *tester) {
		winner := t.oneWins(20, func(i int) (bool, error) {
			return t.store.Join(t.Context(), node(1, claimer(i).Token()), 1e12)
		})
		t.beats(node(1, claimer(winner).Token()), true)
	}},
	{"Claimers of overlapping batches share the rows", overlappingBatches},
	{"Claim, settle, cancel and rescue have one winner per version", storm},
}

func claimer(i int) row.Executor { return row.Executor{Process: int64(i), Claim: 1} }

// oneWins lets n callers try at once, and returns the one that has won.
func (t *tester) oneWins(n int, try func(i int) (bool, error)) (winner int) {
	t.Helper()
	won := make([]bool, n)
	together(n, func(i int) {
		var err error
		if won[i], err = try(i); err != nil && !mayTryAgain(err) {
			t.Errorf("caller %d: %v", i, err)
		}
	})
	winners := 0
	for i, is := range won {
		if is {
			winners, winner = winners+1, i
		}
	}
	if winners != 1 {
		t.Fatalf("%d callers have won, want one", winners)
	}
	return winner
}

// together calls do n times at once and waits for all.
func together(n int, do func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}

// mayTryAgain reports whether nothing was changed because of a deadlock or a lock.
func mayTryAgain(err error) bool {
	c := row.ClassOf(err)
	return c == row.ClassNotApplied || c == row.ClassLocked
}

// makers notes the callers that have made a change which only one can make.
type makers struct {
	mu sync.Mutex
	of map[int64]row.Executor
}

func (m *makers) made(t *tester, what int64, caller row.Executor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other, twice := m.of[what]; twice {
		t.Errorf("%d was made by %v and by %v", what, other, caller)
	}
	m.of[what] = caller
}

func overlappingBatches(t *tester) {
	const rows, claimers = 60, 12
	ids := upTo(rows)
	t.insertTasks(plain, ids...)
	won := makers{of: make(map[int64]row.Executor)}
	together(claimers, func(i int) {
		c := row.Claim{Executor: claimer(i)}
		for j := range 2 * rows / 3 {
			c.Rows = append(c.Rows, row.Ref{ID: ids[(i*7+j)%rows]})
		}
		claimed, err := t.store.Claim(t.Context(), c)
		for err != nil && mayTryAgain(err) {
			claimed, err = t.store.Claim(t.Context(), c)
		}
		if err != nil {
			t.Errorf("claimer %d: %v", i, err)
		}
		for _, r := range claimed.Rows {
			won.made(t, r.ID, c.Executor)
		}
	})
	for _, r := range t.all() {
		if won.of[r.ID] != r.Executor || r.Version != 1 {
			t.Errorf("task %d is owned by %v at version %d, won by %v", r.ID, r.Executor, r.Version, won.of[r.ID])
		}
	}
	if len(won.of) != rows {
		t.Errorf("%d rows of %d were won", len(won.of), rows)
	}
}

// storm lets actors read a row and try a transition from what they saw. One whose transition applied has made that
// version.
func storm(t *tester) {
	const actors, rounds = 8, 25
	t.insertTasks(plain, 1)
	versions := makers{of: make(map[int64]row.Executor)}
	var empty atomic.Int64 // claims that returned no row: some have won a row that was settled before they read it back
	together(actors, func(actor int) {
		for round := range rounds {
			states, err := t.store.States(t.Context(), []int64{1})
			if err != nil || len(states) != 1 {
				t.Errorf("actor %d: %v, %v", actor, states, err)
				return
			}
			seen, status := row.Ref{ID: 1, Version: states[0].Version}, states[0].Status
			caller := row.Executor{Process: int64(actor), Claim: int64(round) + 1}
			applied := 0
			if status == row.Pending && actor%2 == 0 {
				var claimed row.Claimed
				claimed, err = t.store.Claim(t.Context(), row.Claim{Rows: []row.Ref{seen}, Executor: caller})
				if applied = len(claimed.Rows); applied == 0 {
					empty.Add(1)
				}
			} else {
				to := []row.Status{row.Completed, row.Pending, row.Cancelled, row.Failed}[(actor+round)%4]
				if status.Final() {
					to = row.Pending
				}
				c := row.Change{ID: 1, Version: seen.Version, From: status, To: to, Due: t.start, Executor: caller}
				applied, err = t.store.Update(t.Context(), nil, []row.Change{c})
			}
			if err != nil && !mayTryAgain(err) {
				t.Errorf("%v: %v", caller, err)
			}
			if applied == 1 {
				versions.made(t, seen.Version+1, caller)
			}
		}
	})
	made := int64(len(versions.of))
	if last := t.get(1).Version; made > last || made+empty.Load() < last {
		t.Errorf("%d transitions and %d empty claims, the row is at version %d", made, empty.Load(), last)
	}
}

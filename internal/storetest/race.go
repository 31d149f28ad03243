package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/delaytask/delaytask/internal/row"
)

var raceTests = []test{
	{"Of fifty claimers one wins", func(t *tester) {
		t.insertTasks(plain, 1)
		winners := make([]int, 50)
		together(len(winners), func(i int) {
			claimed, err := t.store.Claim(t.Context(),
				row.Claim{Rows: []row.Ref{{ID: 1}}, Executor: fmt.Sprintf("host:1:t:%d", i)})
			if err != nil && !mayTryAgain(err) {
				t.Errorf("claimer %d: %v", i, err)
			}
			winners[i] = len(claimed.Rows)
		})
		total := 0
		for i, n := range winners {
			total += n
			if n == 1 && t.get(1).Executor != fmt.Sprintf("host:1:t:%d", i) {
				t.Errorf("claimer %d was told it won, the row says %s", i, t.get(1).Executor)
			}
		}
		if got := t.get(1); total != 1 || got.Version != 1 || got.Attempt != 1 {
			t.Fatalf("%d claimers won; version %d, attempt %d", total, got.Version, got.Attempt)
		}
	}},
	{"Claimers of overlapping batches share the rows", overlappingBatches},
	{"Claim, settle, cancel and rescue have one winner per version", storm},
	{"Of many saves with one key one is stored", func(t *tester) {
		stored := make([]bool, 20)
		together(len(stored), func(i int) {
			err := t.store.Insert(t.Context(), nil, []row.Row{t.keyed(int64(i+1), "a", "k")})
			if err != nil && row.ClassOf(err) != row.ClassDuplicate && !mayTryAgain(err) {
				t.Errorf("save %d: %v", i, err)
			}
			stored[i] = err == nil
		})
		var want []int64
		for i, ok := range stored {
			if ok {
				want = append(want, int64(i+1))
			}
		}
		if len(want) != 1 {
			t.Fatalf("%v were told that they are stored, want one", want)
		}
		t.lists(row.Filter{Limit: 100}, want...)
	}},
	{"Of many nodes one gets the number", func(t *tester) {
		joined := make([]bool, 20)
		together(len(joined), func(i int) {
			var err error
			joined[i], err = t.store.Join(t.Context(), node(1, fmt.Sprintf("token-%d", i)), 1e12)
			if err != nil && !mayTryAgain(err) {
				t.Errorf("node %d: %v", i, err)
			}
		})
		winners := 0
		for i, ok := range joined {
			if ok {
				winners++
				t.beats(node(1, fmt.Sprintf("token-%d", i)), true)
			}
		}
		if winners != 1 {
			t.Fatalf("%d nodes joined, want one", winners)
		}
	}},
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

// mayTryAgain reports whether nothing was changed because others were in the way: a deadlock, or a lock that lasted.
func mayTryAgain(err error) bool {
	c := row.ClassOf(err)
	return c == row.ClassNotApplied || c == row.ClassLocked
}

func overlappingBatches(t *tester) {
	const rows, claimers = 60, 12
	ids := make([]int64, rows)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	t.insertTasks(plain, ids...)
	var mu sync.Mutex
	wonBy := make(map[int64]string)
	together(claimers, func(i int) {
		c := row.Claim{Executor: fmt.Sprintf("host:1:t:%d", i)}
		for j := range 2 * rows / 3 {
			c.Rows = append(c.Rows, row.Ref{ID: ids[(i*7+j)%rows]})
		}
		for {
			claimed, err := t.store.Claim(t.Context(), c)
			if err != nil && mayTryAgain(err) {
				continue
			}
			if err != nil {
				t.Errorf("claimer %d: %v", i, err)
			}
			mu.Lock()
			for _, r := range claimed.Rows {
				if other, twice := wonBy[r.ID]; twice {
					t.Errorf("task %d was won by %s and by %s", r.ID, other, c.Executor)
				}
				wonBy[r.ID] = c.Executor
			}
			mu.Unlock()
			return
		}
	})
	for _, r := range t.list(row.Filter{Limit: 1000}) {
		if wonBy[r.ID] != r.Executor || r.Version != 1 {
			t.Errorf("task %d is held by %q at version %d, won by %q", r.ID, r.Executor, r.Version, wonBy[r.ID])
		}
	}
	if len(wonBy) != rows {
		t.Errorf("%d rows of %d were won", len(wonBy), rows)
	}
}

// storm lets actors read a row and try a transition of what they saw; whoever is told that it applied has made that version.
func storm(t *tester) {
	const actors, rounds = 8, 25
	t.insertTasks(plain, 1)
	var mu sync.Mutex
	var empty atomic.Int64 // a claim that won does not know it when the row was settled before it was read back
	madeBy := make(map[int64]string)
	made := func(version int64, who string) {
		mu.Lock()
		defer mu.Unlock()
		if other, twice := madeBy[version]; twice {
			t.Errorf("version %d was made by %s and by %s", version, other, who)
		}
		madeBy[version] = who
	}
	together(actors, func(actor int) {
		for round := range rounds {
			states, err := t.store.States(t.Context(), []int64{1})
			if err != nil || len(states) != 1 {
				t.Errorf("actor %d: %v, %v", actor, states, err)
				return
			}
			seen := row.Ref{ID: 1, Version: states[0].Version}
			who := fmt.Sprintf("actor %d in round %d", actor, round)
			if states[0].Status == row.Pending && actor%2 == 0 {
				claimed, err := t.store.Claim(t.Context(), row.Claim{Rows: []row.Ref{seen}, Executor: who})
				if err != nil && !mayTryAgain(err) {
					t.Errorf("%s: %v", who, err)
				}
				if len(claimed.Rows) == 1 {
					made(claimed.Rows[0].Version, who)
				} else {
					empty.Add(1)
				}
				continue
			}
			to := []row.Status{row.Completed, row.Pending, row.Cancelled, row.Failed}[(actor+round)%4]
			if states[0].Status.Final() {
				to = row.Pending
			}
			c := row.Change{ID: 1, Version: seen.Version, From: states[0].Status, To: to, Due: t.start, Executor: who}
			applied, err := t.store.Update(t.Context(), nil, []row.Change{c})
			if err != nil && !mayTryAgain(err) {
				t.Errorf("%s: %v", who, err)
			}
			if applied == 1 {
				made(seen.Version+1, who)
			}
		}
	})
	told := int64(len(madeBy))
	if last := t.get(1).Version; told > last || told+empty.Load() < last {
		t.Errorf("%d transitions were told of and %d claims came back empty, the row is at version %d", told, empty.Load(), last)
	}
}

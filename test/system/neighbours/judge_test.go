package main

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

// observed is 10 s of quiet and 10 s beside a neighbour: each tag saves, starts and completes a task every 50 ms, and
// each takes 1 ms, or what slow says once the neighbour is there.
func observed(slow func(tag int, since time.Duration) time.Duration) (l *ledger, quiet, held span) {
	l, began := newLedger(), time.Now()
	quiet = span{began, began.Add(10 * time.Second)}
	held = span{quiet.to, quiet.to.Add(10 * time.Second)}
	for at := began; at.Before(held.to); at = at.Add(50 * time.Millisecond) {
		for tag := range tags {
			took := time.Millisecond
			if held.has(at) {
				took = max(took, slow(tag, at.Sub(held.from)))
			}
			s := sample{tag: tag, at: at, done: at.Add(took)}
			l.saved, l.begun, l.finished = append(l.saved, s), append(l.begun, s), append(l.finished, s)
		}
	}
	return l, quiet, held
}

func TestTheFloorHoldsForTheTagsThatAreNotCovered(t *testing.T) {
	t.Parallel()
	const second = time.Second
	most := []string{"covered"}
	slowly := []string{"saves: worst", "saves: p99"}
	all := [tags]bool{true, true, true, true, true, true, true, true, true, true}
	three, both := [tags]bool{3: true}, [tags]bool{3: true, 5: true}
	of := func(slow time.Duration, slowTags ...int) func(int, time.Duration) time.Duration {
		return func(tag int, _ time.Duration) time.Duration {
			if slices.Contains(slowTags, tag) {
				return slow
			}
			return 0
		}
	}
	twoSlow := of(20*second, 3, 5)
	for name, c := range map[string]struct {
		slow    func(int, time.Duration) time.Duration
		blocked [tags]bool
		names   bool
		covered int
		broken  []string // of the saves; starts and completions are the same
	}{
		"nothing is slow":                  {slow: of(0)},
		"locked places that slow nothing":  {slow: of(0), blocked: three},
		"the named tag alone":              {slow: of(20*second, 4), names: true},
		"the same, of a neighbour of none": {slow: of(20*second, 4), broken: slowly},
		"one other that is covered":        {slow: of(20*second, 3, 4), blocked: three, names: true, covered: 1},
		"one other that is not":            {slow: of(20*second, 3, 4), names: true, broken: slowly},
		"two others that are covered":      {slow: twoSlow, blocked: both, names: true, covered: 2, broken: most},
		"all others that are covered": {slow: func(int, time.Duration) time.Duration { return 20 * second },
			blocked: all, names: true, covered: tags - 1, broken: most},
		"eleven milliseconds":          {slow: of(11*time.Millisecond, 1), broken: []string{"saves: p99"}},
		"twice the grain":              {slow: of(10*time.Millisecond, 1)},
		"two of ten tags stand still":  {slow: of(20*second, 1, 2), broken: []string{"saves: throughput"}},
		"a second and a half at first": {slow: atFirst(1500 * time.Millisecond)},
		"more than that":               {slow: atFirst(1501 * time.Millisecond), broken: []string{"saves: worst"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, quiet, held := observed(c.slow)
			n := neighbour{tag: c.names}
			r := l.judge(n, quiet, held, c.blocked)
			broken := r.breaks(n)
			for _, want := range c.broken {
				if !slices.Contains(broken, want) {
					t.Errorf("broken: %q, want %q among them", broken, want)
				}
			}
			if c.covered == tags-1 && len(broken) > 1 {
				t.Errorf("broken: %q, though nothing is left to judge", broken)
			}
			if c.broken == nil && broken != nil || len(r.Covered) != c.covered {
				t.Errorf("broken: %q, covered: %q", broken, r.Covered)
			}
		})
	}
}

// atFirst slows what happens once, at the beginning.
func atFirst(took time.Duration) func(int, time.Duration) time.Duration {
	return func(_ int, since time.Duration) time.Duration {
		if since == 0 {
			return took
		}
		return 0
	}
}

func TestATaskIsOpenUntilItIsComplete(t *testing.T) {
	t.Parallel()
	l := newLedger()
	call := l.saves(1)
	later := time.Now().Add(time.Second)
	l.completed(2) // its event may overtake the save's answer
	if n := l.open(later); n != 1 {
		t.Errorf("%d open during the call, want 1", n)
	}
	call.returned([]delaytask.SaveResult{{ID: 1}, {ID: 2}}, nil)
	if n := l.open(later); n != 1 {
		t.Errorf("%d open after it, want 1", n)
	}
	l.completed(1)
	if n := l.open(later); n != 0 {
		t.Errorf("%d open at the end, want none", n)
	}
}

package scanner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

func rowsFrom(id int64, n int) []row.Due {
	rows := make([]row.Due, n)
	for i := range rows {
		rows[i] = row.Due{ID: id + int64(i), Version: 1, Tag: "a", Due: 1}
	}
	return rows
}

func odd(id int64, _ string) int { return int(1 - id%2) }

func none(int64, string) int { return 1 }

func TestShareFilterTakesItsShareFirstAndOthersRowsWhenTheyHaveWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shareFilter
		rows := rowsFrom(1, 10)
		if got := s.filter(rows, odd); len(got) != 5 || got[0].ID != 1 || got[4].ID != 9 {
			t.Fatalf("at first it takes %v, want its own five", got)
		}
		if again, wait := s.next(false); !again || wait != soon {
			t.Fatalf("again: %t, after %v; it has met rows of its own", again, wait)
		}
		time.Sleep(soon)
		if got := s.filter(rows, none); len(got) != 0 {
			t.Fatalf("after %v it takes %v", soon, got)
		}
		if again, wait := s.next(false); !again || wait != overdue {
			t.Fatalf("again: %t, after %v; only rows of others are left", again, wait)
		}
		time.Sleep(overdue)
		rows[1].Version = 2 // id 2 was run meanwhile, and came back
		if got := s.filter(rows, odd); len(got) != 9 {
			t.Errorf("then it takes %d rows, want all but the one that another node had meanwhile", len(got))
		}
	})
}

func TestShareFilterTakesWhatHasWaitedAlsoWhileItHasItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shareFilter
		rows := rowsFrom(1, 10)
		for waited := time.Duration(0); waited < stuckAfter; waited += soon {
			if got := s.filter(rows, odd); len(got) != 5 {
				t.Fatalf("after %v it takes %v", waited, got)
			}
			if _, wait := s.next(false); wait != soon {
				t.Fatalf("after %v it waits %v", waited, wait)
			}
			time.Sleep(soon)
		}
		if got := s.filter(rows, odd); len(got) != 10 {
			t.Errorf("after %v it takes %v, want all", stuckAfter, got)
		}
	})
}

func TestShareFilterHelpsOnlyWithoutRowsOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, mine := range map[string]func(int64, string) int{"helps": none, "has its own": odd} {
		var s shareFilter
		s.filter(rowsFrom(1, 4*spared), mine)
		if _, wait := s.next(false); wait == 0 {
			t.Fatalf("%s: it does not wait", name)
		}
		// Other rows by now. None of them has waited.
		got := len(s.filter(rowsFrom(1_000_001, 4*spared), none))
		if want := 3 * spared; name == "helps" && got != want {
			t.Errorf("it helps with %d rows, want all but the %d that their nodes have in memory", got, spared)
		} else if name != "helps" && got != 0 {
			t.Errorf("it takes %d rows of others while it has its own", got)
		}
	}
}

// Where all rows wait for long, few nodes take the same one: each next node in the order of a row waits twice as long.
func TestShareFilterLeavesARowTwiceAsLongInEachTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turnOf := func(id int64, _ string) int { return int(id) }
		for _, own := range []bool{false, true} {
			s := shareFilter{}
			rows, least := rowsFrom(1, 4), overdue
			if own {
				rows, least = rowsFrom(0, 5), stuckAfter // row 0 comes again and again
			}
			began, taken := time.Now(), map[int64]time.Duration{}
			for len(taken) < 4 {
				for _, d := range s.filter(rows, turnOf) {
					if _, again := taken[d.ID]; !again && d.ID > 0 {
						taken[d.ID] = time.Since(began)
					}
				}
				_, wait := s.next(false)
				time.Sleep(wait)
			}
			for id, after := range taken {
				if want := least << (id - 1); after < want || after > want+overdue {
					t.Errorf("own rows: %t: the row of turn %d is taken after %v, want %v", own, id, after, want)
				}
			}
		}
	})
}

// A long backlog is read in several turns. A row that one turn left has not waited for another node.
func TestShareFilterGoesOnAtOnceWhileThereIsMore(t *testing.T) {
	t.Parallel()
	var s shareFilter
	rows := rowsFrom(1, 10)
	s.filter(rows, odd)
	if again, wait := s.next(true); !again || wait != 0 {
		t.Errorf("again: %t, after %v", again, wait)
	}
	if got := s.filter(rows, odd); len(got) != 5 {
		t.Errorf("it takes %d rows, want its own", len(got))
	}
	s = shareFilter{}
	s.filter(rows, none)
	if again, wait := s.next(true); !again || wait != overdue {
		t.Errorf("a turn of others' rows alone: again: %t, after %v", again, wait)
	}
	s = shareFilter{}
	s.filter(rows, func(int64, string) int { return 0 })
	if again, _ := s.next(false); again {
		t.Error("all rows were taken, and it looks again")
	}
}

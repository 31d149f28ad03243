package linear

import (
	"testing"

	"github.com/delaytask/delaytask/internal/journal"
)

// by says that the last operation was another node's.
func (s *told) by(node string) {
	for i := len(*s) - 2; i < len(*s); i++ {
		(*s)[i].Node = node
	}
}

// TestMembersMayBeBehind tells what is broken on one server, and what of it on members that may be behind one another.
func TestMembersMayBeBehind(t *testing.T) {
	t.Parallel()
	life := func(s *told) {
		s.done(insert, ok)
		s.done(claim(0, "a"), won(1))
		s.done(change(executing, 1, "completed"), ok)
	}
	for name, c := range map[string]struct {
		story           func(*told)
		server, members bool // it is broken there
	}{
		"another node sees what was": {server: true, story: func(s *told) {
			life(s)
			s.done(look, saw(executing, 1, "a"))
			s.by("m")
		}},
		"another node sees first what is and then what was": {server: true, members: true, story: func(s *told) {
			life(s)
			s.done(look, saw("completed", 2, "a"))
			s.by("m")
			s.done(look, saw(executing, 1, "a"))
			s.by("m")
		}},
		"each node forgets nothing, and they are apart": {server: true, story: func(s *told) {
			life(s)
			s.done(look, saw(pending, 0, ""))
			s.by("m")
			s.done(look, saw(executing, 1, "a"))
			s.by("o")
			s.done(look, saw(executing, 1, "a"))
			s.by("m")
		}},
		"the node that wrote sees what was": {server: true, members: true, story: func(s *told) {
			life(s)
			s.done(look, saw(executing, 1, "a"))
		}},
		"what never was is seen": {server: true, members: true, story: func(s *told) {
			life(s)
			s.done(look, saw(executing, 1, "b"))
			s.by("m")
		}},
		"what was not asked for yet is seen": {server: true, members: true, story: func(s *told) {
			s.done(insert, ok)
			s.done(look, saw(executing, 1, "a"))
			s.by("m")
			s.done(claim(0, "a"), won(1))
		}},
		"two claims both win": {server: true, members: true, story: func(s *told) {
			s.done(insert, ok)
			s.done(claim(0, "a"), won(1))
			s.done(claim(0, "b"), won(1))
			s.by("m")
		}},
		"a settle after a lost lease succeeds": {server: true, members: true, story: func(s *told) {
			s.done(insert, ok)
			s.done(claim(0, "a"), won(1))
			s.done(change(executing, 1, pending), ok) // a rescue
			s.by("m")
			s.done(claim(2, "b"), won(3))
			s.by("m")
			s.done(change(executing, 1, "completed"), ok)
		}},
		"the table ends as it was": {server: true, members: true, story: func(s *told) {
			life(s)
			s.call("", journal.Event{Kind: journal.Row, Status: executing, Version: 1, Executor: "a"})
		}},
		"a task that nobody saw being stored was something before": {server: true, story: func(s *told) {
			s.done(claim(4, "a"), won(5))
			s.done(look, saw(pending, 4, "z"))
			s.by("m")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s told
			c.story(&s)
			for behind, want := range map[bool]bool{false: c.server, true: c.members} {
				violations, counts := Check(s, behind)
				if (len(violations) == 1) != want || counts.Broken != len(violations) || counts.Undecided != 0 {
					t.Errorf("behind %t: %v, %+v; want broken %t", behind, violations, counts, want)
				}
			}
		})
	}
}

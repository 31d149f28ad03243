package linear

import (
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

func by(node string, call journal.Event) journal.Event {
	call.Node = node
	return call
}

// TestMembersMayBeBehind says what is a violation on one server, and what on members that may be behind one another.
func TestMembersMayBeBehind(t *testing.T) {
	t.Parallel()
	life := did(claim(0, "a"), won(1), change(executing, 1, "completed"), ok)
	for name, c := range map[string]struct {
		life            bool // before the story
		story           func(*told)
		server, members bool // it is a violation there
		unseen          bool
	}{
		"another node sees what was": {life: true, server: true, story: did(by("m", look), saw(executing, 1, "a"))},
		"another node sees first what is and then what was": {life: true, server: true, members: true, story: did(
			by("m", look), saw("completed", 2, "a"), by("m", look), saw(executing, 1, "a"),
		)},
		"each node forgets nothing, and they are apart": {life: true, server: true, story: did(
			by("m", look), saw(pending, 0, ""), by("o", look), saw(executing, 1, "a"),
			by("m", look), saw(executing, 1, "a"),
		)},
		"the node that wrote sees what was": {life: true, server: true, members: true, story: did(
			look, saw(executing, 1, "a"),
		)},
		"what never was is seen": {life: true, server: true, members: true, story: did(
			by("m", look), saw(executing, 1, "b"),
		)},
		"what was not asked for yet is seen": {server: true, members: true, story: did(
			by("m", look), saw(executing, 1, "a"), claim(0, "a"), won(1),
		)},
		"two claims both win": {server: true, members: true, story: did(
			claim(0, "a"), won(1), by("m", claim(0, "b")), won(1),
		)},
		"a settle after a lost lease succeeds": {server: true, members: true, story: did(
			claim(0, "a"), won(1),
			by("m", change(executing, 1, pending)), ok, // a rescue
			by("m", claim(2, "b")), won(3),
			change(executing, 1, "completed"), ok,
		)},
		"the table ends as it was": {life: true, server: true, members: true, story: func(s *told) {
			s.call("", journal.Event{Kind: journal.Row, Status: executing, Version: 1, Executor: "a"})
		}},
		"a task whose insert is not recorded was something before": {server: true, unseen: true, story: did(
			claim(4, "a"), won(5), by("m", look), saw(pending, 4, "z"),
		)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := saved(!c.unseen)
			if c.life {
				life(&s)
			}
			c.story(&s)
			for behind, want := range map[bool]bool{false: c.server, true: c.members} {
				violations, counts := Check(s, behind)
				if (len(violations) == 1) != want || counts.Broken != len(violations) || counts.Undecided != 0 {
					t.Errorf("behind %t: %v, %+v; want a violation: %t", behind, violations, counts, want)
				}
			}
		})
	}
}

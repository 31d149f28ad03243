package linear

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

const task = 7

// told is a story of calls and returns on one task, in their order.
type told []journal.Event

func (s *told) call(op string, e journal.Event) {
	e.Op, e.ID, e.Node = op, task, cmp.Or(e.Node, "n")
	*s = append(*s, e)
}

func (s *told) back(op string, e journal.Event) {
	e.Kind = journal.StoreReturn
	s.call(op, e)
}

// done is a call and its return with nothing between.
func (s *told) done(call, answer journal.Event) {
	op := fmt.Sprint(len(*s))
	answer.Node = call.Node
	s.call(op, call)
	s.back(op, answer)
}

// did is a story of calls with their returns, one after another.
func did(pairs ...journal.Event) func(*told) {
	return func(s *told) {
		for i := 0; i < len(pairs); i += 2 {
			s.done(pairs[i], pairs[i+1])
		}
	}
}

// lived is a story of calls after a life of the task: a claim and a completion.
func lived(pairs ...journal.Event) func(*told) {
	return did(append([]journal.Event{claim(0, "a"), won(1), change(executing, 1, "completed"), ok}, pairs...)...)
}

func by(node string, call journal.Event) journal.Event {
	call.Node = node
	return call
}

var (
	insert  = journal.Event{Kind: journal.StoreInsert}
	look    = journal.Event{Kind: journal.StoreRead}
	ok      = journal.Event{}
	leftOut = journal.Event{Error: journal.WrongStatus}
	unknown = journal.Event{Error: journal.Unknown}
	refused = journal.Event{Error: journal.Refused}
)

// saved begins a story with a save, or not.
func saved(begin bool) (s told) {
	if begin {
		s.done(insert, ok)
	}
	return s
}

func claim(version int64, executor string) journal.Event {
	return journal.Event{Kind: journal.StoreClaim, Version: version, Executor: executor}
}

func won(version int64) journal.Event { return journal.Event{Version: version} }

func change(from string, version int64, to string) journal.Event {
	return journal.Event{Kind: journal.StoreChange, Version: version, Status: from, Detail: to, Executor: "a"}
}

func saw(status string, version int64, executor string) journal.Event {
	return journal.Event{Status: status, Version: version, Executor: executor}
}

func TestHistories(t *testing.T) {
	t.Parallel()
	const completed = "completed"
	for name, c := range map[string]struct {
		story    func(*told)
		violated bool
		weaker   bool // it holds unless the record is said to be whole
		behind   bool // it holds where members may be behind one another
		unseen   bool // the story does not begin with a save
	}{
		"a life": {story: did(
			look, saw(pending, 0, ""),
			claim(0, "a"), won(1),
			claim(0, "b"), leftOut,
			change(executing, 1, pending), ok,
			claim(2, "a"), won(3),
			change(executing, 3, completed), ok,
			look, saw(completed, 4, "a"),
		)},
		"two claims at once, one wins": {story: func(s *told) {
			s.call("x", claim(0, "a"))
			s.call("y", claim(0, "b"))
			s.back("x", leftOut)
			s.back("y", won(1))
			s.done(look, saw(executing, 1, "b"))
		}},
		"two claims, both win": {violated: true, story: func(s *told) {
			s.call("x", claim(0, "a"))
			s.call("y", claim(0, "b"))
			s.back("x", won(1))
			s.back("y", won(1))
		}},
		"a claim wins another version than it asked for": {violated: true, story: did(claim(0, "a"), won(2))},
		"a claim wins what another executor owns": {violated: true, story: did(
			claim(0, "a"), won(1), look, saw(executing, 1, "b"),
		)},
		"a settle after a lost lease succeeds": {violated: true, story: did(
			claim(0, "a"), won(1),
			change(executing, 1, pending), ok, // a rescue
			claim(2, "b"), won(3),
			change(executing, 1, completed), ok,
		)},
		"a settle after a lost lease is left out": {story: did(
			claim(0, "a"), won(1),
			change(executing, 1, pending), ok,
			claim(2, "b"), won(3),
			change(executing, 1, completed), leftOut,
			look, saw(executing, 3, "b"),
		)},
		"a read goes back": {violated: true, story: func(s *told) {
			s.call("x", claim(0, "a"))
			s.done(look, saw(executing, 1, "a"))
			s.done(look, saw(pending, 0, ""))
			s.back("x", won(1))
		}},
		"reads go forth while a claim is under way": {story: func(s *told) {
			s.call("x", claim(0, "a"))
			s.done(look, saw(pending, 0, ""))
			s.done(look, saw(executing, 1, "a"))
			s.back("x", won(1))
		}},
		"an unknown claim never happens": {story: did(
			claim(0, "a"), unknown, look, saw(pending, 0, ""), claim(0, "b"), won(1),
		)},
		"an unknown claim happens late": {story: did(
			claim(0, "a"), unknown, look, saw(pending, 0, ""), look, saw(executing, 1, "a"),
		)},
		"a call without a return happens": {story: func(s *told) {
			s.call("x", claim(0, "a"))
			s.done(change(executing, 1, completed), ok)
		}},
		"an unknown claim must have happened, and then it had not": {violated: true, story: did(
			claim(0, "a"), unknown, change(executing, 1, pending), ok, claim(0, "b"), won(1),
		)},
		"what is unknown cannot happen before it is called": {violated: true, story: did(
			look, saw(executing, 1, "a"), claim(0, "a"), unknown,
		)},
		"what was refused happens": {violated: true, story: did(claim(0, "a"), refused, look, saw(executing, 1, "a"))},
		"a task is changed that was never stored": {violated: true, unseen: true, story: did(
			insert, refused, change(pending, 0, "cancelled"), ok,
		)},
		"a task whose insert is not recorded": {unseen: true, story: did(
			claim(4, "a"), won(5), look, saw(executing, 5, "a"),
		)},
		"a lease goes to another executor": {story: did(
			claim(0, "a"), won(1),
			journal.Event{Kind: journal.StoreRenew, Version: 1, Executor: "b"}, leftOut,
			look, saw(executing, 1, "b"),
		)},
		"the table ends otherwise than the answers say": {violated: true, story: func(s *told) {
			s.done(change(pending, 0, "cancelled"), ok)
			s.call("", journal.Event{Kind: journal.Row, Status: pending})
		}},
		"a claim leaves out what is free": {violated: true, weaker: true, story: did(
			claim(0, "a"), leftOut, look, saw(pending, 0, ""),
		)},
		"a task is gone": {violated: true, weaker: true, story: did(look, saw(absent, 0, ""))},
		"another node sees what was": {violated: true, behind: true, story: lived(
			by("m", look), saw(executing, 1, "a"),
		)},
		"another node sees first what is and then what was": {violated: true, story: lived(
			by("m", look), saw(completed, 2, "a"), by("m", look), saw(executing, 1, "a"),
		)},
		"each node forgets nothing, and they are apart": {violated: true, behind: true, story: lived(
			by("m", look), saw(pending, 0, ""), by("o", look), saw(executing, 1, "a"),
			by("m", look), saw(executing, 1, "a"),
		)},
		"the node that wrote sees what was": {violated: true, story: lived(look, saw(executing, 1, "a"))},
		"what never was is seen":            {violated: true, story: lived(by("m", look), saw(executing, 1, "b"))},
		"what was not asked for yet is seen": {violated: true, story: did(
			by("m", look), saw(executing, 1, "a"), claim(0, "a"), won(1),
		)},
		"two nodes both win": {violated: true, story: did(claim(0, "a"), won(1), by("m", claim(0, "b")), won(1))},
		"a settle after another node's rescue succeeds": {violated: true, story: did(
			claim(0, "a"), won(1),
			by("m", change(executing, 1, pending)), ok,
			by("m", claim(2, "b")), won(3),
			change(executing, 1, completed), ok,
		)},
		"the table ends as it was": {violated: true, story: func(s *told) {
			lived()(s)
			s.call("", journal.Event{Kind: journal.Row, Status: executing, Version: 1, Executor: "a"})
		}},
		"a task whose insert is not recorded was something before": {
			violated: true, behind: true, unseen: true,
			story: did(claim(4, "a"), won(5), by("m", look), saw(pending, 4, "z")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := saved(!c.unseen)
			c.story(&s)
			whole := append(told{{Kind: journal.StoreWhole}}, s...)
			for name, check := range map[string]struct {
				events told
				behind bool
				want   bool
			}{
				"whole":   {whole, false, c.violated},
				"partial": {s, false, c.violated && !c.weaker},
				"behind":  {s, true, c.violated && !c.weaker && !c.behind},
			} {
				violations, counts := Check(check.events, check.behind)
				found := len(violations)
				if (found == 1) != check.want || counts.Broken != found || counts.Undecided != 0 || counts.Tasks != 1 {
					t.Errorf("%s: %v, %+v; want a violation: %t", name, violations, counts, check.want)
				}
				if check.want && found == 1 && (violations[0].Task != task || len(violations[0].Events) == 0) {
					t.Errorf("a violation that shows nothing: %+v", violations[0])
				}
			}
		})
	}
}

func TestTasksAreJudgedApart(t *testing.T) {
	t.Parallel()
	s := saved(true)
	s.done(claim(0, "a"), won(1))
	other := append(told(nil), s...)
	for i := range other {
		other[i].ID = task + 1
	}
	other.done(claim(0, "b"), won(1)) // of the first one
	violations, counts := Check(append(s, other...), false)
	if len(violations) != 1 || violations[0].Task != task || counts.Tasks != 2 || counts.Operations != 5 {
		t.Errorf("got %v, %+v", violations, counts)
	}
}

func TestManyOfUnknownOutcomeAreDecided(t *testing.T) {
	t.Parallel()
	s := saved(true)
	for version := range int64(40) {
		s.done(change(pending, version, pending), unknown)
		s.done(change(pending, version, "cancelled"), unknown)
	}
	s.done(look, saw(pending, 20, "a"))
	s.done(look, saw(pending, 19, "a"))
	for _, behind := range []bool{false, true} {
		violations, counts := Check(s, behind)
		if len(violations) != 1 || counts.Undecided != 0 || counts.Unknown != 80 {
			t.Errorf("behind %t: got %v, %+v", behind, violations, counts)
		}
	}
}

package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// standings are the combinations of progress, lease and decider that an attempt can reach.
const standings = `
claimed      held       byProcessor
claimed      lost       byProcessor
claimed      cancelled  byProcessor
claimed      answered   byProcessor
running      held       byProcessor
running      held       byTransaction
running      answered   byProcessor
running      answered   byTransaction
interrupted  lost       byProcessor
interrupted  lost       byTransaction
interrupted  cancelled  byProcessor
interrupted  cancelled  byTransaction
interrupted  answered   byProcessor
interrupted  answered   byTransaction
abandoned    lost       byProcessor
abandoned    lost       byTransaction
abandoned    cancelled  byProcessor
abandoned    cancelled  byTransaction
abandoned    answered   byProcessor
abandoned    answered   byTransaction
disowned     lost       byProcessor
disowned     lost       byTransaction
disowned     cancelled  byProcessor
disowned     cancelled  byTransaction
disowned     answered   byProcessor
disowned     answered   byTransaction
returned     held       byProcessor
returned     held       byTransaction
returned     held       byHolder
returned     lost       byProcessor
returned     lost       byTransaction
returned     lost       byHolder
returned     cancelled  byProcessor
returned     cancelled  byTransaction
returned     cancelled  byHolder
returned     answered   byProcessor
returned     answered   byTransaction
returned     answered   byHolder
`

// standing is an attempt as a value, so that it can be compared.
type standing struct {
	progress progress
	lease    leaseState
	decider  decider
}

func (s standing) String() string {
	return fmt.Sprintf("%-12s %-10s %s",
		[]string{"claimed", "running", "interrupted", "abandoned", "disowned", "returned"}[s.progress],
		[]string{"held", "lost", "cancelled", "answered"}[s.lease],
		[]string{"byProcessor", "byTransaction", "byHolder"}[s.decider])
}

func (s standing) inside() bool { return s.progress > claimed && s.progress < returned }

// happenings are what can happen to an attempt, with when each can.
var happenings = []struct {
	can func(s standing) bool
	do  func(a *Attempt)
}{
	{func(s standing) bool { return s.progress == claimed }, func(a *Attempt) { a.call(a.end, time.Time{}, 1) }},
	{standing.inside, func(a *Attempt) { a.completeInTx() }},
	{standing.inside, func(a *Attempt) { a.finish() }},
	{
		func(s standing) bool { return s.progress == returned && s.decider == byProcessor },
		func(a *Attempt) { a.HandOver() },
	},
	{always, func(a *Attempt) { a.Answer() }},
	{always, func(a *Attempt) { a.lose(delaytask.ErrLeaseLost) }},
	{always, func(a *Attempt) { a.lose(delaytask.ErrCancelled) }},
	{always, func(a *Attempt) { a.abandon() }},
	{always, func(a *Attempt) { a.disown() }},
}

func always(standing) bool { return true }

// in returns an attempt that stands so, and tells how its context was ended.
func in(s standing) (a *Attempt, cause func() error) {
	ctx, end := context.WithCancelCause(context.Background())
	return &Attempt{progress: s.progress, lease: s.lease, decider: s.decider, end: end},
		func() error { return context.Cause(ctx) }
}

func TestAttemptStandsOnlyAsListed(t *testing.T) {
	reached := map[standing]bool{{}: true}
	for open := []standing{{}}; len(open) > 0; open = open[1:] {
		from := open[0]
		for _, event := range happenings {
			if !event.can(from) {
				continue
			}
			a, cause := in(from)
			event.do(a)
			var to standing
			to.progress, to.lease, to.decider = a.state()
			if to.progress < from.progress {
				t.Errorf("%v goes back to %v", from, to)
			}
			if interrupts := to.progress == interrupted && from.progress < interrupted; interrupts != (cause() != nil) {
				t.Errorf("%v to %v: the context ended with %v", from, to, cause())
			}
			if from.lease != leaseHeld && to.lease == leaseHeld {
				t.Errorf("%v has its lease back in %v", from, to)
			}
			if !reached[to] {
				reached[to] = true
				open = append(open, to)
			}
		}
	}
	got := slices.SortedFunc(maps.Keys(reached), func(a, b standing) int {
		return slices.Compare([]int{int(a.progress), int(a.lease), int(a.decider)},
			[]int{int(b.progress), int(b.lease), int(b.decider)})
	})
	var lines strings.Builder
	for _, s := range got {
		fmt.Fprintln(&lines, s)
	}
	if lines.String() != strings.TrimPrefix(standings, "\n") {
		t.Errorf("an attempt can stand as\n%s", &lines)
	}
}

// The answer of a renewal may come when the lease was reckoned lost, and moves the deadline.
func TestALostLeaseStaysLostWhateverALateRenewalSays(t *testing.T) {
	a := &Attempt{}
	a.lose(delaytask.ErrLeaseLost)
	a.renewed(time.Now().Add(time.Hour))
	if !a.isOver() {
		t.Error("the task may start")
	}
}

func TestReleaseNeverMovesADueTimeForward(t *testing.T) {
	for _, c := range []struct{ due, now, want row.Time }{{100, 50, 100}, {100, 150, 150}} {
		a := &Attempt{Due: c.due, Row: row.Row{ID: 1, Version: 3, Attempt: 2, Due: c.due + 15_000_000}}
		change := Released(a, c.now).Change
		if change.Due != c.want || change.Attempt != 1 || change.To != row.Pending || change.Version != 3 {
			t.Errorf("due %d, now %d: %+v", c.due, c.now, change)
		}
	}
}

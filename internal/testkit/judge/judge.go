// Package judge decides from a journal alone whether the invariants of delaytask held. It imports neither the engine
// nor a store: it compares what callers and processors were told with what the database showed. Package linear checks
// whether the history of each task is linearizable.
//
// The journal must give every save a body of its own. A save that is repeated under the id of an unknown outcome
// repeats the body. Nodes are named anew for each life.
package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/linear"
)

// Rules are what the invariants leave to settings.
type Rules struct {
	MaxAttempts int           // of every task; 0: not judged
	Quarantine  int           // lost leases after which a task is failed
	TTR         time.Duration // the longest lease, for journals that do not show how leases are moved
	Settle      time.Duration // from the end of the faults until the bounds count
	CaughtUp    time.Duration // from the due time of a task until it is claimed, at most
	Rescue      time.Duration // from the end of a lease until it is taken, at most
	Hold        time.Duration // beyond Settle: for how long executors that could not renew their leases keep them
	Backoff     time.Duration // from a failed attempt to the next, at most
	Failover    time.Duration // how far apart the clocks of two servers may be
	Blur        time.Duration // how far apart the clocks of the journals may be
	Commit      time.Duration // from the write of a transition until others see it, at most
	Behind      bool          // a read at one member of a cluster may miss what another has committed
	Killers     []string      // the faults, by their details, that end a process from outside
}

// Encode is what a journal keeps of the rules, in the detail of an event of [journal.Rules].
func Encode(r Rules) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and names alone
	}
	return string(text)
}

// RulesOf returns the rules that a journal carries. It returns an error for a journal without rules.
func RulesOf(events []journal.Event) (Rules, error) {
	var r Rules
	for _, e := range events {
		if e.Kind == journal.Rules {
			if err := json.Unmarshal([]byte(e.Detail), &r); err != nil {
				return r, fmt.Errorf("read the rules of a journal: %w", err)
			}
			return r, nil
		}
	}
	return r, errors.New("the journal carries no rules: an event of the kind \"rules\" is missing")
}

// Invariant is the number of a promise in docs/promises.md. The invariant 0 is implied there: what is stored or runs
// was saved. Those from 13 on are about schedules, and docs/testing.md says them.
type Invariant int

// OfSchedules is the first invariant about schedules. A journal without any shows nothing of these.
const OfSchedules Invariant = 13

// Invariants are those that are judged, and what a violation of each means.
var Invariants = []struct {
	Number    Invariant
	Violation string
}{
	{0, "phantom tasks: stored or run without a save"},
	{1, "accepted and lost"},
	{2, "wrong answers to saves and changes"},
	{3, "ended without success, cancel or attempts used up"},
	{4, "completed twice, or without the lease"},
	{5, "started early"},
	{7, "not caught up within the bound"},
	{8, "leases rescued late, early or unfairly; tasks quarantined for others"},
	{10, "unfinished tasks that share a key"},
	{11, "attempts burned by a stop"},
	{13, "ticks decided twice, never, or otherwise than their schedule says"},
	{14, "runs of a schedule open or at work together, or retried too late"},
	{15, "schedules behind"},
	{16, "ticks decided otherwise than a single node decides them"},
}

// Violation is a case that breaks an invariant.
type Violation struct {
	Invariant Invariant       `json:"invariant"`
	Task      int64           `json:"task,omitempty"`
	What      string          `json:"what"`
	Events    []journal.Event `json:"events"` // that show it
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %d, task %d: %s", v.Invariant, v.Task, v.What)
}

// Verdict is what a journal shows.
type Verdict struct {
	Violations  []Violation        // of invariants
	Unexplained []linear.Violation // tasks whose history is not linearizable
	Counts      Counts
	Linear      linear.Counts
}

// Total is the number of violations of either kind.
func (v Verdict) Total() int { return len(v.Violations) + len(v.Unexplained) }

// Show writes the violations with the events that show them, at most most of each kind.
func (v Verdict) Show(w io.Writer, most int) error {
	var errs []error
	show := func(violation fmt.Stringer, events []journal.Event) {
		_, err := fmt.Fprintln(w, violation)
		errs = append(errs, err, journal.WriteTo(w, events))
	}
	for _, one := range v.Violations[:min(len(v.Violations), most)] {
		show(one, one.Events)
	}
	for _, one := range v.Unexplained[:min(len(v.Unexplained), most)] {
		show(one, one.Events)
	}
	return errors.Join(errs...)
}

// Judge reads a journal in its order. The caller merges the journals of several processes first.
func Judge(events []journal.Event, rules Rules) Verdict {
	h := read(events)
	c := &checker{history: h, rules: rules, counts: count(h)}
	for _, rule := range []func(*checker){
		(*checker).noPhantoms, (*checker).acceptedIsStored, (*checker).unknownIsSaid, (*checker).acceptedChanges,
		(*checker).ranAtLeastOnce, (*checker).completedOnce, (*checker).neverEarly, (*checker).caughtUp,
		(*checker).rescued, (*checker).quarantinedAlone, (*checker).keysUnique, (*checker).stopsAreFree,
		(*checker).ticksOnce, (*checker).runsApart, (*checker).retriedInTime, (*checker).schedulesGoOn,
		(*checker).asOneNode,
	} {
		rule(c)
	}
	v := Verdict{Violations: c.violations, Counts: c.counts}
	v.Unexplained, v.Linear = linear.Check(events, rules.Behind)
	return v
}

// checker is a history and the violations found in it.
type checker struct {
	*history
	rules      Rules
	counts     Counts
	violations []Violation
}

// report notes a violation with the events that show it.
func (c *checker) report(p Invariant, task int64, what string, shown ...*journal.Event) {
	v := Violation{Invariant: p, Task: task, What: what}
	for _, e := range shown {
		if e != nil {
			v.Events = append(v.Events, *e)
		}
	}
	c.violations = append(c.violations, v)
}

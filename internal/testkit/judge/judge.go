// Package judge decides from a journal alone whether the promises of delaytask held. It knows neither engine nor store,
// so it believes nobody: what callers and processors were told is held against what the database showed. Whether some
// order explains what was told of each task is for package linear.
//
// Each promise has a file of its own. The journal must give every save a body of its own; saving again under the id of
// an unknown outcome repeats the body. Nodes are named anew for each life.
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

// Rules are what the promises leave to settings.
type Rules struct {
	MaxAttempts int           // of every task; 0: not judged
	Quarantine  int           // lost leases after which a task is failed
	TTR         time.Duration // the longest lease, for journals that do not show how leases are moved
	Settle      time.Duration // how long after the end of the faults the bounds begin to count
	CaughtUp    time.Duration // how long after it was due a task is claimed at the latest
	Rescue      time.Duration // how long after its end a lease is taken at the latest
	Hold        time.Duration // how long beyond Settle leases may be left alone, for executors that could not renew them
	Blur        time.Duration // how far apart the clocks of the journals may be
	Commit      time.Duration // how long after its write a transition is seen by others at the latest
	Behind      bool          // there are members, and what one has committed another may not show yet
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

// RulesOf returns the rules that a journal carries. It returns an error when there are none.
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

// Promise is the number of a promise in docs/promises.md. 0 is the one that goes without saying: nothing runs that
// nobody saved.
type Promise int

// Promises are those that are judged, and what it means that one of them is broken.
var Promises = []struct {
	Number Promise
	Broken string
}{
	{0, "stored or run, and saved by nobody"},
	{1, "accepted and lost"},
	{2, "told what is not so: saves, changes"},
	{3, "ended without success, cancel or attempts used up"},
	{4, "completed twice, or by who did not hold it"},
	{5, "started early"},
	{7, "not caught up within the bound"},
	{8, "leases rescued late, early or unfairly; tasks quarantined for others"},
	{10, "unfinished tasks that share a key"},
	{11, "attempts burned by a stop"},
}

// Violation is a promise that did not hold.
type Violation struct {
	Promise Promise         `json:"promise"`
	Task    int64           `json:"task,omitempty"`
	What    string          `json:"what"`
	Events  []journal.Event `json:"events"` // that show it
}

func (v Violation) String() string {
	return fmt.Sprintf("promise %d, task %d: %s", v.Promise, v.Task, v.What)
}

// Verdict is what a journal shows.
type Verdict struct {
	Violations  []Violation        // of promises
	Unexplained []linear.Violation // tasks of which no order explains what was told
	Counts      Counts
	Linear      linear.Counts
}

// Broken is how many violations there are, of either kind.
func (v Verdict) Broken() int { return len(v.Violations) + len(v.Unexplained) }

// Show writes the violations with the events that show them, of each kind so many at most.
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

// Judge reads a journal in its order; those of several processes are to be merged before.
func Judge(events []journal.Event, rules Rules) Verdict {
	h := read(events)
	c := &court{history: h, rules: rules, counts: count(h)}
	for _, rule := range []func(*court){
		(*court).inventedNothing, (*court).acceptedIsStored, (*court).unknownIsSaid, (*court).toldTheTruth, (*court).ranAtLeastOnce,
		(*court).completedOnce, (*court).neverEarly, (*court).caughtUp, (*court).rescued, (*court).quarantinedAlone,
		(*court).keysUnique, (*court).stopsAreFree,
	} {
		rule(c)
	}
	v := Verdict{Violations: c.violations, Counts: c.counts}
	v.Unexplained, v.Linear = linear.Check(events, rules.Behind)
	return v
}

// court is a history under judgement.
type court struct {
	*history
	rules      Rules
	counts     Counts
	violations []Violation
}

// breach notes a violation with the events that show it.
func (c *court) breach(p Promise, task int64, what string, shown ...*journal.Event) {
	v := Violation{Promise: p, Task: task, What: what}
	for _, e := range shown {
		if e != nil {
			v.Events = append(v.Events, *e)
		}
	}
	c.violations = append(c.violations, v)
}

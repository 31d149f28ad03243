// Package judge decides from a journal alone whether the invariants of delaytask held. It imports neither the engine
// nor a store: it compares what callers and processors were told with what the database showed. Package linear checks
// whether the history of each task is linearizable.
//
// The journal must give every save a body of its own. A save that is repeated under the id of an unknown outcome
// repeats the body. Nodes are named anew for each life.
package judge

import (
	"errors"
	"fmt"
	"io"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/linear"
)

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

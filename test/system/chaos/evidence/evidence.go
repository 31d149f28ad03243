// Package evidence looks in the journals of a chaos run for the effect of each fault: a fault without an effect does
// not count.
package evidence

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Episode is a fault from its begin to its end.
type Episode struct {
	Kind   string
	Target string // the process that was hurt, if it was one
	IDs    []int64
	Begin  time.Time
	End    time.Time
}

// Evidence is what the journals show, indexed.
type Evidence struct {
	Episodes []Episode
	spans    []span
	ofNode   map[string][]span
	writes   map[int64][]time.Time
	answers  map[int64][]time.Time // to callers, and of processors
}

// span is a run of a task, or an operation of a caller.
type span struct {
	node       string
	begin, end time.Time // end is zero if the process ended before
}

// New reads the journals, which are in order.
func New(events []journal.Event) *Evidence {
	e := &Evidence{ofNode: map[string][]span{}, writes: map[int64][]time.Time{}, answers: map[int64][]time.Time{}}
	open := map[string]*span{}
	faults := map[string]journal.Event{}
	for i := range events {
		v := &events[i]
		switch {
		case v.Kind == journal.RunStart, strings.HasPrefix(string(v.Kind), "call."):
			open[v.Op] = &span{node: v.Node, begin: v.At}
		case v.Kind == journal.RunEnd, strings.HasPrefix(string(v.Kind), "return."):
			if v.ID != 0 {
				e.answers[v.ID] = append(e.answers[v.ID], v.At)
			}
			if s := open[v.Op]; s != nil {
				s.end = v.At
				e.add(*s)
				delete(open, v.Op)
			}
		case v.Kind == journal.Write:
			e.writes[v.ID] = append(e.writes[v.ID], v.At)
		case v.Kind == journal.FaultBegin && v.ID != 0: // a process that kills itself for its task
			e.Episodes = append(e.Episodes,
				Episode{Kind: v.Detail, Target: v.Node, IDs: []int64{v.ID}, Begin: v.At, End: v.At})
		case v.Kind == journal.FaultBegin:
			faults[v.Op] = *v
		case v.Kind == journal.FaultEnd && v.Error == journal.OK:
			e.Episodes = append(e.Episodes,
				Episode{Kind: v.Detail, Target: v.Key, IDs: ids(v.Body), Begin: faults[v.Op].At, End: v.At})
		}
	}
	for _, s := range open {
		e.add(*s)
	}
	return e
}

func (e *Evidence) add(s span) {
	e.spans = append(e.spans, s)
	e.ofNode[s.node] = append(e.ofNode[s.node], s)
}

func ids(list string) (found []int64) {
	for _, text := range strings.Fields(list) {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			found = append(found, id)
		}
	}
	return found
}

// Interrupted: the process never finished something that it began.
func Interrupted(e *Evidence, f Episode) bool {
	return slices.ContainsFunc(e.ofNode[f.Target], func(s span) bool { return s.end.IsZero() })
}

// Busy: the process ran something while the fault lasted.
func Busy(e *Evidence, f Episode) bool { return slices.ContainsFunc(e.ofNode[f.Target], f.meets) }

// AnyBusy: some process was.
func AnyBusy(e *Evidence, f Episode) bool { return slices.ContainsFunc(e.spans, f.meets) }

func (f Episode) meets(s span) bool {
	return !s.begin.After(f.End) && (s.end.IsZero() || s.end.After(f.Begin))
}

// around is how far from a fault a transition may be and still belong to it: statements wait for locks, and are
// repeated.
const around = 30 * time.Second

// Changed: one of the tasks that the fault touched has changed at that time.
func Changed(e *Evidence, f Episode) bool { return f.near(e.writes) }

// MostChanged: more than half of the tasks that the fault touched have changed at that time.
func MostChanged(e *Evidence, f Episode) bool {
	changed := 0
	for _, id := range f.IDs {
		if (Episode{IDs: []int64{id}, Begin: f.Begin, End: f.End}).near(e.writes) {
			changed++
		}
	}
	return 2*changed > len(f.IDs)
}

// Answered: a call for one of the tasks that the fault touched returned at that time.
func Answered(e *Evidence, f Episode) bool { return f.near(e.answers) }

func (f Episode) near(moments map[int64][]time.Time) bool {
	for _, id := range f.IDs {
		for _, at := range moments[id] {
			if at.After(f.Begin.Add(-around)) && at.Before(f.End.Add(around)) {
				return true
			}
		}
	}
	return false
}

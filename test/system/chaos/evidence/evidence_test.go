package evidence

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(second int, e journal.Event) journal.Event {
	e.At = noon.Add(time.Duration(second) * time.Second)
	return e
}

// story is a worker that runs a task from second 10 to 20 and is killed in the middle of another, and a fault.
func story(fault ...journal.Event) *Evidence {
	return New(append([]journal.Event{
		at(10, journal.Event{Node: "w", Kind: journal.RunStart, Op: "1", ID: 7}),
		at(20, journal.Event{Node: "w", Kind: journal.RunEnd, Op: "1", ID: 7}),
		at(21, journal.Event{Node: "database", Kind: journal.Write, ID: 7}),
		at(60, journal.Event{Node: "w", Kind: journal.RunStart, Op: "2", ID: 8}),
	}, fault...))
}

func TestFaultCountsWhereItMetSomething(t *testing.T) {
	t.Parallel()
	fault := func(begin, end int, target, ids string) *Evidence {
		return story(at(begin, journal.Event{Kind: journal.FaultBegin, Op: "f", Detail: "k"}),
			at(end, journal.Event{Kind: journal.FaultEnd, Op: "f", Detail: "k", Key: target, Body: ids}))
	}
	for _, tt := range []struct {
		name  string
		e     *Evidence
		shows func(*Evidence, Episode) bool
		want  bool
	}{
		{"in the middle of a run", fault(15, 30, "w", ""), Busy, true},
		{"between two runs", fault(25, 50, "w", ""), Busy, false},
		{"until a run had begun", fault(25, 70, "w", ""), Busy, true},
		{"of another process", fault(15, 30, "v", ""), Busy, false},
		{"while a process runs", fault(15, 30, "", ""), AnyBusy, true},
		{"while no process runs", fault(25, 30, "", ""), AnyBusy, false},
		{"left a run without an end", fault(61, 62, "w", ""), Interrupted, true},
		{"left nothing behind", fault(61, 62, "v", ""), Interrupted, false},
		{"its task has changed", fault(20, 22, "", "9 7"), Changed, true},
		{"its task has not changed", fault(20, 22, "", "9"), Changed, false},
		{"its task changed at another time", fault(100, 101, "", "7"), Changed, false},
		{"most of its tasks have changed", fault(20, 22, "", "7 7 9"), MostChanged, true},
		{"half of its tasks have changed", fault(20, 22, "", "7 9"), MostChanged, false},
		{"it touched nothing", fault(20, 22, "", ""), MostChanged, false},
		{"its task was answered", fault(20, 22, "", "7"), Answered, true},
		{"its task was not answered", fault(20, 22, "", "8"), Answered, false},
	} {
		if len(tt.e.Episodes) != 1 {
			t.Fatalf("%s: %d episodes", tt.name, len(tt.e.Episodes))
		}
		if got := tt.shows(tt.e, tt.e.Episodes[0]); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestFaultWithoutAnEffectIsNone(t *testing.T) {
	t.Parallel()
	e := story(at(15, journal.Event{Kind: journal.FaultBegin, Op: "f", Detail: "k"}),
		at(16, journal.Event{Kind: journal.FaultEnd, Op: "f", Detail: "k", Error: journal.Refused}))
	if len(e.Episodes) != 0 {
		t.Errorf("got %+v", e.Episodes)
	}
}

func TestProcessThatEndsItselfIsAFault(t *testing.T) {
	t.Parallel()
	e := story(at(61, journal.Event{Node: "w", Kind: journal.FaultBegin, Op: "d", Detail: "kill after claim", ID: 8}))
	if len(e.Episodes) != 1 || e.Episodes[0].Target != "w" || !Interrupted(e, e.Episodes[0]) {
		t.Errorf("got %+v", e.Episodes)
	}
}

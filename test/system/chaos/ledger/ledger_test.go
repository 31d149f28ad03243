package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/linear"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

func TestDocumentShowsWhatIsRecorded(t *testing.T) {
	t.Parallel()
	if err := Runs.Check("../../../.."); err != nil {
		t.Error(err)
	}
}

func line(code string, tasks, lost int) Line {
	return Line{
		Code: code, Commit: "c", Server: "S", Seconds: 1800, Tasks: tasks, Broken: map[string]int{"1": lost},
		Faults: map[string]Fault{"kill": {Injected: 2, Confirmed: 1}},
		Linear: linear.Counts{Tasks: 51, Operations: 400, Undecided: 1},
	}
}

func TestOnlyRunsOfTheLastCodeAreAddedUp(t *testing.T) {
	t.Parallel()
	got := Tables([]Line{line("old", 5000, 1), line("new", 1000, 0), line("new", 2000, 0)})
	for _, want := range []string{
		"2 runs of code `new`", "1.0 h of faults", "| 1 accepted and lost | 0 | 0.001 of a task |",
		"| kill | 4 | 2 |", "| tasks | 3000 |",
		"| histories that are not linearizable | 0 | 0.03 of a task |", "| operations in these histories | 800 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if broken := Tables([]Line{line("new", 1000, 1)}); !strings.Contains(broken, "| 1 accepted and lost | 1 |  |") {
		t.Errorf("a zero's bound beside another number:\n%s", broken)
	}
}

func TestWhatWasReachedStandsBesideWhatWasAsked(t *testing.T) {
	t.Parallel()
	single := line("new", 1000, 0)
	single.Accepted = 990
	single.Faults = map[string]Fault{
		"kill worker": {Injected: 7, Confirmed: 5}, "kill after claim": {Injected: 2, Confirmed: 2},
		"kill database":       {Injected: 3, Confirmed: 3},
		"lost reply to claim": {Injected: 40, Confirmed: 39}, "lost claim": {Injected: 9, Confirmed: 9},
	}
	single.Workers.Early = role.State{Memory: 20 << 20, Goroutines: 31}
	single.Workers.Late = role.State{Memory: 21 << 20, Goroutines: 30}
	galera := line("new", 300, 0)
	galera.Kind, galera.Seconds, galera.Broken["4"] = "galera", 120, 2
	galera.Faults = map[string]Fault{"member killed": {Injected: 4, Confirmed: 4}}
	got := Tables([]Line{galera, single})
	for _, want := range []string{
		"| process kills | 500 | 7 | 9 | |", "| database kills | 50 | 7 | 7 | |",
		"| lost replies | 1000 | 39 | 40 | |", "| partitions | 50 | 0 | 0 | |",
		"| saves accepted under faults | 1000000 | 990 | | |", "| of these started early | 0 | 0 | | 0.002 of a task |",
		"| Galera, all members written: faults for | 600 s | 120 s | | |",
		"| Galera: members killed | some | 4 | 4 | |",
		"| Galera: completed twice | 0 | 2 | |  |", "| group replication: completed twice | 0 | not run | |  |",
		"| no growth in 3600 s | 20 and 21 MiB in 1800 s |", "| no growth in 3600 s | 31 and 30 in 1800 s |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

func TestGrowthIsSeenBetweenFirstAndLast(t *testing.T) {
	t.Parallel()
	states := []role.State{
		{Memory: 1, Goroutines: 9}, {Memory: 5, Goroutines: 2}, {Memory: 2, Goroutines: 3},
		{Memory: 8, Goroutines: 4}, {Memory: 3, Goroutines: 1},
	}
	want := Growth{
		First: states[0], Last: states[4],
		Early: role.State{Memory: 5, Goroutines: 9}, Late: role.State{Memory: 8, Goroutines: 4},
	}
	if got := GrowthOf(states); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := GrowthOf(nil); got != (Growth{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestLineHoldsTheVerdict(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var l Line
	v := judge.Verdict{
		Violations: []judge.Violation{{Invariant: 4, Task: 7, What: "it was"}, {Invariant: 4}},
		Counts:     judge.Counts{Accepted: 3, Extra: 1, Slowest: 3 * time.Second},
		Linear:     linear.Counts{Tasks: 3, Operations: 9},
	}
	l.Count(v, []journal.Event{
		{At: noon, Kind: journal.RunStart, Version: 1, Due: noon.Add(-time.Hour)}, // late, amid the faults
		{At: noon.Add(time.Second), Kind: journal.Phase, Detail: journal.PhaseDrain},
		{At: noon.Add(5 * time.Second), Kind: journal.RunStart, Version: 1, Due: noon.Add(3 * time.Second)},
		{At: noon.Add(9 * time.Second), Kind: journal.Phase, Detail: journal.PhaseDone},
	})
	if l.Broken["4"] != 2 || l.Accepted != 3 || l.Extra != 1 || l.Linear.Operations != 9 || l.Latest != 2 ||
		l.Drained != 8 || l.Slowest != 3 || len(l.Violations) != 2 || l.Violations[0] != "invariant 4, task 7: it was" {
		t.Errorf("got %+v", l)
	}
}

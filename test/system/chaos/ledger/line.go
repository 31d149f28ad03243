// Package ledger keeps the results of chaos runs, one line of JSON each, and makes of them the tables of
// test/lab/results/reliability.md.
package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/linear"
	"github.com/delaytask/delaytask/test/lab/record"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

// Runs are those that were recorded, found from the root of the repository.
var Runs = record.Record[Line]{
	File: "test/lab/results/reliability.jsonl", What: "chaos", Command: "go -C test/system run ./chaos report",
	Documents: map[string]func([]Line) string{
		"test/lab/results/reliability.md": Tables, "docs/measured.md": Summary,
	},
}

// Judged are the folders whose change makes older runs worthless: the engine, its parts, and the store.
var Judged = append(slices.Clone(record.Seeds), "internal/store/sqlstore")

type Line struct {
	Began   time.Time `json:"began"`
	Commit  string    `json:"commit"`
	Changed bool      `json:"changed,omitempty"` // the tree had changes that are not in the commit
	Code    string    `json:"code"`              // of engine and store: runs are summed while it stays the same
	Kind    string    `json:"kind"`              // of the server, as -server names it
	Old     string    `json:"old,omitempty"`     // the commit that every other worker was built from
	Server  string    `json:"server"`
	Seed    uint64    `json:"seed"`
	Seconds int       `json:"seconds"` // of faults

	Faults     map[string]Fault `json:"faults"`
	Accepted   int              `json:"accepted"` // saves
	Tasks      int              `json:"tasks"`
	Executions int              `json:"executions"`
	Extra      int              `json:"extra"`   // executions that succeeded beside the one that counts
	Unknown    int              `json:"unknown"` // saves of unknown outcome
	Rescued    int              `json:"rescued"`
	Quarantine int              `json:"quarantined"`
	Slowest    float64          `json:"slowest,omitempty"`    // seconds of a rescue after lease and faults
	Broken     map[string]int   `json:"broken"`               // violations by invariant; those with none are not there
	Violations []string         `json:"violations,omitempty"` // the first of them
	Linear     linear.Counts    `json:"linear"`               // histories of single tasks
	Latest     float64          `json:"latest"`               // first start after the faults was so many seconds late
	Drained    float64          `json:"drained"`              // seconds from the end of the faults until all was done
	Workers    Growth           `json:"steady_worker"`        // of the worker that no fault ends
}

// Fault is how often one kind happened.
type Fault struct {
	Injected  int `json:"injected"`  // as the injector saw it
	Confirmed int `json:"confirmed"` // of these, as the journals show that something was met
}

// mostKept is how many violations a line holds. Journals are lost, and the number of an invariant does not say what was
// wrong.
const mostKept = 10

// Count fills the line from the verdict and its journal.
func (l *Line) Count(v judge.Verdict, events []journal.Event) {
	c := v.Counts
	l.Linear = v.Linear
	l.Accepted, l.Tasks, l.Executions, l.Extra, l.Unknown = c.Accepted, c.Tasks, c.Executions, c.Extra, c.Unknown
	l.Rescued, l.Quarantine, l.Slowest = c.Rescued, c.Quarantine, c.Slowest.Seconds()
	l.Broken = map[string]int{}
	for _, violation := range v.Violations {
		l.Broken[fmt.Sprint(violation.Invariant)]++
		if len(l.Violations) < mostKept {
			l.Violations = append(l.Violations, violation.String())
		}
	}
	var drain time.Time
	for i := range events {
		e := &events[i]
		switch {
		case e.Kind == journal.Phase && e.Detail == journal.PhaseDrain:
			drain = clock(e)
		case e.Kind == journal.Phase && e.Detail == journal.PhaseDone && !drain.IsZero():
			l.Drained = clock(e).Sub(drain).Seconds()
		case e.Kind == journal.RunStart && e.Version == 1 && !drain.IsZero() && e.Due.After(drain):
			l.Latest = max(l.Latest, clock(e).Sub(e.Due).Seconds())
		}
	}
}

func clock(e *journal.Event) time.Time {
	if e.Clock.IsZero() {
		return e.At
	}
	return e.Clock
}

// Growth is how much a process needed, by its report every few seconds. First and last alone would show two moments.
// The highest of the second half, compared with the highest of the first, shows whether anything grows.
type Growth struct {
	First role.State `json:"first"`
	Last  role.State `json:"last"`
	Early role.State `json:"early"` // the highest of the first half
	Late  role.State `json:"late"`  // and of the second
}

// GrowthOf reads the reports of a process, in their order.
func GrowthOf(states []role.State) (g Growth) {
	if len(states) == 0 {
		return g
	}
	half := (len(states) + 1) / 2
	return Growth{
		First: states[0], Last: states[len(states)-1], Early: highest(states[:half]), Late: highest(states[half:]),
	}
}

func highest(states []role.State) (h role.State) {
	for _, s := range states {
		h = role.State{Memory: max(h.Memory, s.Memory), Goroutines: max(h.Goroutines, s.Goroutines)}
	}
	return h
}

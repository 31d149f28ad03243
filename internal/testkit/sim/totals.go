package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/linear"
)

type Totals struct {
	Seeds      int                     `json:"seeds"`
	Failed     []uint64                `json:"failed"` // seeds with a violation
	Violations int                     `json:"violations"`
	Broken     map[judge.Invariant]int `json:"broken"` // violations by invariant; those with none are not there
	Counts     judge.Counts            `json:"counts"`
	Linear     linear.Counts           `json:"linear"`
	// Bound is the 95 % upper bound of the share of seeds with a violation; 1 when there is one.
	Bound float64 `json:"bound"`
}

func (t *Totals) add(seed uint64, v judge.Verdict) {
	one := Totals{
		Seeds: 1, Violations: v.Total(), Broken: map[judge.Invariant]int{}, Counts: v.Counts, Linear: v.Linear,
	}
	for _, violation := range v.Violations {
		one.Broken[violation.Invariant]++
	}
	if one.Violations > 0 {
		one.Failed = []uint64{seed}
	}
	t.Add(one)
}

// Add adds what other seeds have shown.
func (t *Totals) Add(o Totals) {
	t.Seeds += o.Seeds
	t.Counts.Add(o.Counts)
	t.Linear.Add(o.Linear)
	t.addFailed(o)
}

// AddViolations adds the violations of other runs of the same seeds, and nothing else.
func (t *Totals) AddViolations(o Totals) {
	t.Linear.Broken += o.Linear.Broken
	t.addFailed(o)
}

func (t *Totals) addFailed(o Totals) {
	t.Violations += o.Violations
	t.Failed = append(t.Failed, o.Failed...)
	if t.Broken == nil {
		t.Broken = map[judge.Invariant]int{}
	}
	for invariant, n := range o.Broken {
		t.Broken[invariant] += n
	}
	t.Bound = 1
	if len(t.Failed) == 0 {
		t.Bound = min(3/float64(t.Seeds), 1)
	}
}

func (t *Totals) String() string {
	c := t.Counts
	var faults []string
	for _, kind := range slices.Sorted(maps.Keys(c.Faults)) {
		faults = append(faults, fmt.Sprintf("%s %d", kind, c.Faults[kind]))
	}
	line := fmt.Sprintf("%d seeds, %d nodes, "+
		"%d tasks (%d completed, %d failed, %d cancelled), %d executions, %d extra, "+
		"faults: %s, %d crashes, %d graceful stops, "+
		"%d rescued (%d when the bound counted, the slowest after %v), %d quarantined, "+
		"%d saves accepted, %d unknown, %d duplicate, %d refused, "+
		"%d schedules with %d runs and %d ticks that did not run, %d ticks replayed, "+
		"%d operations on %d tasks checked to be linearizable (%d of unknown outcome, %d tasks undecided); "+
		"%d violations",
		t.Seeds, c.Nodes, c.Tasks, c.Completed, c.Failed, c.Cancelled, c.Executions, c.Extra,
		strings.Join(faults, ", "), c.Crashes, c.Stops,
		c.Rescued, c.Timed, c.Slowest.Round(time.Millisecond), c.Quarantine,
		c.Accepted, c.Unknown, c.Duplicates, c.Refused,
		c.Schedules, c.Runs, c.Dropped, c.Replayed,
		t.Linear.Operations, t.Linear.Tasks, t.Linear.Unknown, t.Linear.Undecided, t.Violations)
	if len(t.Failed) == 0 {
		return line + fmt.Sprintf(", 95 %% bound 3/N: %.2g of the seeds", t.Bound)
	}
	return line + fmt.Sprintf(" in the seeds %d", t.Failed)
}

func (t *Totals) JSON() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // numbers alone
	}
	return string(text)
}

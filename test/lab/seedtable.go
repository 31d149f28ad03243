package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/sim"
	"github.com/delaytask/delaytask/test/lab/record"
)

// aim is how many seeds were to be played.
const aim = 100_000

// Reached is the table of docs/reliability.md: the aim, and what of it [Tables] shows.
func Reached(lines []Line) string {
	var held int
	var bound string
	if len(lines) > 0 {
		totals := sum(of(lines, lines[len(lines)-1].Code))
		held, bound = totals.Seeds-len(totals.Failed), record.UpperBound(len(totals.Failed), totals.Seeds, "seed")
	}
	return fmt.Sprintf("| figure | aim | reached | 95 %% upper bound of those with one |\n|---|---|---|---|\n"+
		"| simulated seeds without a violation | %d | %d | %s |\n", aim, held, bound)
}

// Tables are those of docs/simulation.md: the seeds of the code of the last line, added up.
func Tables(lines []Line) string {
	if len(lines) == 0 {
		return "No seed has been recorded yet.\n"
	}
	last := lines[len(lines)-1]
	lines = of(lines, last.Code)
	totals := sum(lines)
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds (%s) of code `%s` (last commit `%s`%s).\n\n",
		totals.Seeds, ranges(lines), last.Code, last.Commit, changes(lines))
	outcomes(&b, &totals)
	b.WriteString("\n")
	figures(&b, &totals)
	return b.String()
}

func ranges(lines []Line) string {
	var all []string
	for _, s := range covered(lines) {
		all = append(all, fmt.Sprintf("%d–%d", s.from, s.to-1))
	}
	return strings.Join(all, ", ")
}

func changes(lines []Line) string {
	if slices.ContainsFunc(lines, func(l Line) bool { return l.Changed }) {
		return "; some parts with changes that are in no commit"
	}
	return ""
}

func outcomes(b *strings.Builder, t *sim.Totals) {
	b.WriteString("| invariant | violations | 95 % upper bound |\n|---|---|---|\n")
	failed := len(t.Failed)
	fmt.Fprintf(b, "| seeds with a violation | %d | %s |\n", failed, record.UpperBound(failed, t.Seeds, "seed"))
	for _, p := range judge.Invariants {
		n := t.Broken[p.Number]
		fmt.Fprintf(b, "| %d %s | %d | %s |\n", p.Number, p.Violation, n, record.UpperBound(n, t.Counts.Tasks, "task"))
	}
	fmt.Fprintf(b, "| histories that are not linearizable | %d | %s |\n",
		t.Linear.Broken, record.UpperBound(t.Linear.Broken, t.Linear.Tasks-t.Linear.Undecided, "task"))
	if failed > 0 {
		fmt.Fprintf(b, "\nSeeds with a violation: %d.\n", t.Failed)
	}
}

func figures(b *strings.Builder, t *sim.Totals) {
	b.WriteString("| figure | |\n|---|---|\n")
	c := &t.Counts
	for _, f := range []struct {
		what string
		n    int
	}{
		{"processes", c.Nodes}, {"crashes", c.Crashes}, {"graceful stops", c.Stops},
		{"saves accepted", c.Accepted}, {"saves of unknown outcome", c.Unknown},
		{"saves that met a duplicate", c.Duplicates}, {"saves refused", c.Refused},
		{"tasks", c.Tasks}, {"completed", c.Completed}, {"failed", c.Failed}, {"cancelled", c.Cancelled},
		{"quarantined", c.Quarantine},
		{"executions", c.Executions}, {"executions that succeeded beside the one that counts", c.Extra},
		{"leases rescued", c.Rescued}, {"of these, of leases that ended when the bound counted", c.Timed},
		{"tasks whose history was checked to be linearizable", t.Linear.Tasks},
		{"operations in these histories", t.Linear.Operations}, {"of these, of unknown outcome", t.Linear.Unknown},
		{"histories that took too long to decide", t.Linear.Undecided},
	} {
		fmt.Fprintf(b, "| %s | %d |\n", f.what, f.n)
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Faults)) {
		fmt.Fprintf(b, "| fault: %s | %d |\n", kind, c.Faults[kind])
	}
}

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/sim"
	"github.com/delaytask/delaytask/test/lab/record"
)

// aim is how many seeds were to be played.
const aim = 20_000

// Reached is the table of docs/measured.md: the aim, and what of it [Tables] shows.
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

// Tables makes the tables of test/lab/results/simulation.md: the seeds of the code of the last line, added up.
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
		n, of, unit := t.Broken[p.Number], t.Counts.Tasks, "task"
		if p.Number >= judge.OfSchedules {
			of, unit = t.Counts.Runs, "run of a schedule"
		}
		if of > 0 {
			fmt.Fprintf(b, "| %d %s | %d | %s |\n", p.Number, p.Violation, n, record.UpperBound(n, of, unit))
		}
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

// Line is a part of a campaign: seeds that follow each other.
type Line struct {
	Began   time.Time `json:"began"`
	Commit  string    `json:"commit"`
	Changed bool      `json:"changed,omitempty"` // the tree had changes that are not in the commit
	Code    string    `json:"code"`              // of the engine: parts are summed while it stays the same
	First   uint64    `json:"first"`             // seed
	sim.Totals
}

func (l *Line) span() span { return span{l.First, l.First + uint64(l.Seeds)} }

// span is a range of seeds, without its end.
type span struct{ from, to uint64 }

func (s span) meets(o span) bool { return s.from < o.to && o.from < s.to }

// counting are the spans of the lines that count: of two that share a seed the first.
func counting(lines []Line) (spans []span) {
	for i := range lines {
		if s := lines[i].span(); !slices.ContainsFunc(spans, s.meets) {
			spans = append(spans, s)
		}
	}
	return spans
}

// covered are the seeds that count, in order, in as few spans as they fill.
func covered(lines []Line) (all []span) {
	spans := counting(lines)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if last := len(all) - 1; last >= 0 && s.from == all[last].to {
			all[last].to = s.to
		} else {
			all = append(all, s)
		}
	}
	return all
}

// missing are the seeds of a span that do not count yet for the code, in parts.
func missing(lines []Line, code string, want span, part uint64) (parts []span) {
	cut := func(s span) {
		for from := s.from; from < s.to; from += part {
			parts = append(parts, span{from, min(from+part, s.to)})
		}
	}
	for _, s := range covered(of(lines, code)) {
		cut(span{want.from, min(s.from, want.to)})
		want.from = max(want.from, s.to)
	}
	cut(want)
	return parts
}

// of are the lines of a code.
func of(lines []Line, code string) []Line {
	return slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Code != code })
}

// sum adds lines of one code up. The violations of lines that do not count are added too.
func sum(lines []Line) (all sim.Totals) {
	spans := counting(lines)
	for i := range lines {
		if s := lines[i].span(); len(spans) > 0 && spans[0] == s {
			spans = spans[1:]
			all.Add(lines[i].Totals)
		} else {
			all.AddViolations(lines[i].Totals)
		}
	}
	slices.Sort(all.Failed)
	all.Failed = slices.Compact(all.Failed)
	return all
}

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/linear"
	"github.com/delaytask/delaytask/internal/testkit/sim"
)

func TestDocumentsShowWhatIsRecorded(t *testing.T) {
	t.Parallel()
	if err := campaign.Check("../.."); err != nil {
		t.Error(err)
	}
}

func line(code string, first uint64, seeds int, failed ...uint64) Line {
	tasks := 10 * seeds
	return Line{Code: code, Commit: "c", First: first, Totals: sim.Totals{
		Seeds: seeds, Failed: failed, Violations: len(failed), Broken: map[judge.Invariant]int{4: len(failed)},
		Counts: judge.Counts{Tasks: tasks, Faults: map[string]int{"freeze": seeds}},
		Linear: linear.Counts{Tasks: tasks},
	}}
}

func TestTablesAddUpSeeds(t *testing.T) {
	t.Parallel()
	shows := func(name string, lines []Line, all ...string) {
		t.Helper()
		got := Tables(lines)
		for _, want := range all {
			if !strings.Contains(got, want) {
				t.Errorf("%s: want %q in\n%s", name, want, got)
			}
		}
	}
	shows("only seeds of the last code",
		[]Line{line("old", 1, 500, 7), line("new", 1, 100), line("new", 201, 100), line("new", 101, 50)},
		"250 seeds (1–150, 201–300) of code `new`", "| seeds with a violation | 0 | 0.01 of a seed |",
		"| 4 completed twice, or without the lease | 0 | 0.001 of a task |", "| tasks | 2500 |",
		"| fault: freeze | 250 |")
	shows("a seed that was played twice once, and its violations always",
		[]Line{line("new", 1, 100), line("new", 51, 100, 60), line("new", 51, 100, 60)},
		"100 seeds (1–100)", "| tasks | 1000 |", "| seeds with a violation | 1 |  |", "without the lease | 2 |  |",
		"Seeds with a violation: [60].")
}

func TestASeedWithAViolationIsNotReached(t *testing.T) {
	t.Parallel()
	for want, lines := range map[string][]Line{
		"| 20000 | 0 |  |\n":                 nil,
		"| 20000 | 250 | 0.01 of a seed |\n": {line("old", 1, 500, 7), line("new", 1, 250)},
		"| 20000 | 249 |  |\n":               {line("new", 1, 200), line("new", 201, 50, 204)},
	} {
		if got := Reached(lines); !strings.HasSuffix(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

func TestACampaignGoesOnWhereItsRecordEnds(t *testing.T) {
	t.Parallel()
	lines := []Line{line("old", 1, 1000), line("new", 11, 10), line("new", 21, 5), line("new", 40, 10)}
	for _, c := range []struct {
		want  span
		parts []span
	}{
		{span{1, 61}, []span{{1, 9}, {9, 11}, {26, 34}, {34, 40}, {50, 58}, {58, 61}}},
		{span{12, 20}, nil},
		{span{15, 30}, []span{{26, 30}}},
		{span{45, 52}, []span{{50, 52}}},
		{span{70, 72}, []span{{70, 72}}},
		{span{1, 3}, []span{{1, 3}}},
	} {
		if got := missing(lines, "new", c.want, 8); fmt.Sprint(got) != fmt.Sprint(c.parts) {
			t.Errorf("of %v: got %v, want %v", c.want, got, c.parts)
		}
	}
}

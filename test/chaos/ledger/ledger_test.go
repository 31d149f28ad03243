package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/journal"
	"github.com/delaytask/delaytask/internal/judge"
	"github.com/delaytask/delaytask/internal/linear"
)

func TestDocumentShowsWhatIsRecorded(t *testing.T) {
	t.Parallel()
	const docs = "../../../docs/"
	lines, err := ReadFile(docs + "reliability.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(docs + "reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Fill(string(document), lines)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(document) {
		t.Error("docs/reliability.md differs from its record: go run ./test/chaos report")
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
		"2 runs of code `new`", "1.0 h of faults", "| 1 accepted and lost | 0 | 0.001 of a task |", "| kill | 4 | 2 |", "| tasks | 3000 |",
		"| no order explains what was told of a task | 0 | 0.03 of a task |", "| operations in these histories | 800 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if broken := Tables([]Line{line("new", 1000, 1)}); !strings.Contains(broken, "| 1 accepted and lost | 1 |  |") {
		t.Errorf("a zero's bound beside what is none:\n%s", broken)
	}
}

func TestLinesAreReadAsTheyWereAppended(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record")
	if lines, err := ReadFile(path); len(lines) != 0 || err != nil {
		t.Errorf("without a file: %v, %v", lines, err)
	}
	for _, code := range []string{"a", "b"} {
		if err := Append(path, line(code, 1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := ReadFile(path)
	if err != nil || len(lines) != 2 || lines[1].Code != "b" || lines[0].Faults["kill"].Injected != 2 {
		t.Errorf("got %+v, %v", lines, err)
	}
	if err := os.WriteFile(path, []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("garbage: %v", err)
	}
}

func TestLineTellsWhatTheJudgeSaw(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var l Line
	v := judge.Verdict{Violations: []judge.Violation{{Promise: 4}, {Promise: 4}}, Counts: judge.Counts{Accepted: 3, Extra: 1}}
	l.Count(v, linear.Counts{Tasks: 3, Operations: 9}, []journal.Event{
		{At: noon, Kind: journal.RunStart, Version: 1, Due: noon.Add(-time.Hour)}, // late, amid the faults
		{At: noon.Add(time.Second), Kind: journal.Phase, Detail: journal.PhaseDrain},
		{At: noon.Add(5 * time.Second), Kind: journal.RunStart, Version: 1, Due: noon.Add(3 * time.Second)},
		{At: noon.Add(9 * time.Second), Kind: journal.Phase, Detail: journal.PhaseDone},
	})
	if l.Broken["4"] != 2 || l.Accepted != 3 || l.Extra != 1 || l.Linear.Operations != 9 || l.Latest != 2 || l.Drained != 8 {
		t.Errorf("got %+v", l)
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// tinyBench is a benchmark whose figures mean nothing.
func tinyBench(more ...string) []string {
	return append([]string{"bench", "--scale", "0.01", "--repeats", "2", "--only", "raw.insert_single,save"}, more...)
}

func TestBenchPrintsATableAndItsProgress(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("tag", "x", "--delay", "1h")
	before := s.ok("list", "--json")
	s.watched = true
	r := s.run(tinyBench()...)
	contains(t, r.stderr, "] save", "#] done")
	out := regexp.MustCompile(`[0-9][0-9.,]*`).ReplaceAllString(r.stdout, "#")
	lines := strings.Split(strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(out, " ")), "\n")
	if len(lines) < 6 || !strings.HasPrefix(lines[0], "SQLite #; # CPUs, ") ||
		!strings.Contains(lines[0], "; default run in ") || lines[1] != "journal_mode=wal synchronous=FULL" ||
		lines[2] != "" || lines[3] != "FIGURE MEDIAN LOWEST HIGHEST OF" {
		t.Fatalf("it prints\n%s", out)
	}
	for _, want := range []string{
		"raw.insert_single_per_s # # # the same on # connections (SQLite: #)",
		"save.per_s # # # tasks by # goroutines that call SaveDelayTask one at a time",
		"save.ratio # - - save.per_s in terms of raw.insert_single_per_s",
	} {
		if !slices.Contains(lines[4:], want) {
			t.Errorf("there is no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if after := s.ok("list", "--json"); after != before {
		t.Errorf("the tasks were\n%s and are\n%s", before, after)
	}
	file := strings.TrimPrefix(s.dsn, "sqlite:")
	left, err := os.ReadDir(filepath.Dir(file))
	servertest.OK(t, err)
	for _, f := range left {
		if !strings.HasPrefix(f.Name(), filepath.Base(file)) {
			t.Errorf("it leaves %s", f.Name())
		}
	}
}

func TestBenchSaysWhatIsMissing(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	servertest.OK(t, a.printBench(&bench.Report{Meta: bench.Meta{
		LeftOut: map[string]string{"lateness.500": "the clock is another one"},
	}}))
	contains(t, out.String(), "Not measured: lateness.500: the clock is another one")
}

func TestBenchRefusesAMeasurementThatThereIsNot(t *testing.T) {
	r := newShell(t).run("bench", "--only", "drian")
	if r.code != exitWrongUse || r.stdout != "" {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	contains(t, r.stderr, `no measurement "drian"; there are raw.insert_alone, raw.insert_single, save`)
	r = newShell(t).run("bench", "--only", "save", "--budget")
	if r.code != exitWrongUse || r.stdout != "" {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	contains(t, r.stderr, "--budget: is of the drain")
}

package main

import (
	"bytes"
	"maps"
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
	contains(t, r.stderr, "raw.insert_single, turn 1 of 2", "#] done")
	out := regexp.MustCompile(`[0-9][0-9.,]*`).ReplaceAllString(r.stdout, "#")
	lines := strings.Split(strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(out, " ")), "\n")
	if len(lines) < 6 || !strings.HasPrefix(lines[0], "SQLite #; # CPUs, ") ||
		!strings.Contains(lines[0], "; default run in ") || lines[1] != "journal_mode=wal synchronous=FULL" ||
		lines[2] != "" || lines[3] != "FIGURE MEDIAN LOWEST HIGHEST OF" {
		t.Fatalf("it prints\n%s", out)
	}
	for _, want := range []string{
		"raw.insert_single_per_s # # # rows by single-row autocommit INSERTs on # connections (SQLite: #)",
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
	for stolen, said := range map[float64]bool{1.9: false, 12.4: true} {
		var out bytes.Buffer
		a := &app{stdout: &out}
		err := a.printBench(&bench.Report{Meta: bench.Meta{
			LeftOut: map[string]string{"restart": "the clock is another one"},
			Stolen:  map[string]float64{"all": stolen, "save": 50},
		}})
		servertest.OK(t, err)
		contains(t, out.String(), "Not measured: restart: the clock is another one")
		if strings.Contains(out.String(), "gave 12 % of its CPU time to others") != said {
			t.Errorf("%v %% stolen: %s", stolen, out.String())
		}
	}
}

// TestPartsOfBenchMeasureTheirOwn starts the program once more, as the service and as several processes.
func TestPartsOfBenchMeasureTheirOwn(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	f := func(part, only, figures string) {
		t.Helper()
		var report map[string]map[string]any
		s.decode(&report, "bench", part, "--scale", "0.002", "--repeats", "1", "--only", only)
		got := strings.Join(slices.Sorted(maps.Keys(report[part])), " ")
		if got != figures || report["meta"]["server"] != "SQLite" {
			t.Errorf("the report is %v", report)
		}
	}
	f("http", "http.save,http.save_batch", "save save_batch")
	f("nodes", "nodes.drain.1,nodes.drain.3", "drain drain_per_s drain_ratio")
	f("rollup", "rollup.drain", "drain")
	for line, want := range map[string]string{
		"--only drian":           `no measurement "drian"; there are raw.insert_single, save`,
		"http --only save":       `bench http does not measure "save"; it measures http.save, http.save_batch`,
		"nodes --only http.save": `bench nodes does not measure "http.save"; it measures nodes.drain.1, nodes.drain.3`,
	} {
		r := s.run(append([]string{"bench"}, strings.Fields(line)...)...)
		if r.code != exitWrongUse || r.stdout != "" {
			t.Errorf("code %d, %s", r.code, r.stdout)
		}
		contains(t, r.stderr, want)
	}
}

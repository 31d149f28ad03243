package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/bench"
)

// tinyBench is a benchmark whose figures mean nothing.
func tinyBench(more ...string) []string {
	return append([]string{"bench", "--scale", "0.01", "--repeats", "2", "--only", "raw.insert_single,save"}, more...)
}

func TestBenchPrintsATable(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	out := regexp.MustCompile(`[0-9][0-9.,]*`).ReplaceAllString(s.ok(tinyBench()...), "#")
	lines := strings.Split(strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(out, " ")), "\n")
	if len(lines) < 6 || !strings.HasPrefix(lines[0], "SQLite #; # CPUs, ") || !strings.Contains(lines[0], "; default run in ") ||
		lines[1] != "journal_mode=wal synchronous=FULL" || lines[2] != "" || lines[3] != "FIGURE MEDIAN LOWEST HIGHEST OF" {
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
}

func TestBenchPrintsNestedJSON(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var report struct {
		Meta   map[string]any
		Raw    map[string]float64
		Save   map[string]any
		Spread map[string]map[string]any
	}
	s.decode(&report, tinyBench()...)
	if report.Meta["server"] != "SQLite" || report.Meta["repeats"] != 2.0 || report.Raw["insert_single_per_s"] <= 0 ||
		report.Save["per_s"] == nil || report.Save["ratio"] == nil || report.Spread["save"]["per_s"] == nil {
		t.Errorf("the report is %+v", report)
	}
}

func TestBenchLeavesTheUsersDatabaseAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("tag", "x", "--delay", "1h")
	before := s.ok("list", "--json")
	s.ok(tinyBench()...)
	if after := s.ok("list", "--json"); after != before {
		t.Errorf("the tasks were\n%s and are\n%s", before, after)
	}
	file := strings.TrimPrefix(s.dsn, "sqlite:")
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if !strings.HasPrefix(f.Name(), filepath.Base(file)) {
			t.Errorf("it leaves %s", f.Name())
		}
	}
}

func TestBenchStartsItself(t *testing.T) {
	t.Parallel()
	var report struct {
		Meta    map[string]any
		Latency map[string]float64 `json:"latency_now"`
	}
	newShell(t).decode(&report, "bench", "--scale", "0.01", "--only", "latency_now.same_process")
	if l := report.Latency; l["p50_ms"] <= 0 || l["p99_ms"] < l["p50_ms"] {
		t.Errorf("latencies are %v", l)
	}
}

func TestBenchSaysWhatItLeavesOut(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	if err := a.printBench(&bench.Report{Meta: bench.Meta{LeftOut: map[string]string{"restart": "the clock is another one"}}}); err != nil {
		t.Fatal(err)
	}
	contains(t, out.String(), "Not measured: restart: the clock is another one")
}

func TestBenchSaysWhatTheMachineLacked(t *testing.T) {
	for stolen, said := range map[float64]bool{1.9: false, 12.4: true} {
		var out bytes.Buffer
		a := &app{stdout: &out}
		if err := a.printBench(&bench.Report{Meta: bench.Meta{Stolen: map[string]float64{"all": stolen, "save": 50}}}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "gave 12 % of its CPU time to others") != said {
			t.Errorf("%v %% stolen: %s", stolen, out.String())
		}
	}
}

func TestBenchShowsItsProgress(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.watched = true
	r := s.run(tinyBench("--json")...)
	if r.code != exitDone || !json.Valid([]byte(r.stdout)) {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	contains(t, r.stderr, "raw.insert_single, turn 1 of 2", "#] done")
}

func TestBenchRefusesWhatThereIsNot(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.run("bench", "--only", "drian")
	if r.code != exitWrongUse || r.stdout != "" {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	contains(t, r.stderr, `no measurement "drian"; there are raw.insert_single, save`)
}

func TestBenchHTTPMeasuresTheServiceAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var report struct {
		Meta map[string]any
		HTTP map[string]map[string]float64
	}
	s.decode(&report, "bench", "http", "--scale", "0.01", "--repeats", "1", "--only", "http.save,http.save_batch")
	if report.HTTP["save"]["per_s"] <= 0 || report.HTTP["save_batch"]["per_s"] <= 0 || len(report.HTTP) != 2 {
		t.Errorf("the report is %+v", report)
	}
	r := s.run("bench", "http", "--only", "save")
	if r.code != exitWrongUse {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	contains(t, r.stderr, `bench http does not measure "save"; it measures http.save, http.save_batch`)
}

func TestBenchNodesMeasuresSeveralProcesses(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var report struct {
		Meta  map[string]any
		Nodes struct {
			DrainPerS  map[string]float64 `json:"drain_per_s"`
			DrainRatio float64            `json:"drain_ratio"`
			Drain      map[string]float64
		}
	}
	s.decode(&report, "bench", "nodes", "--scale", "0.002", "--repeats", "1", "--only", "nodes.drain.1,nodes.drain.3")
	n := report.Nodes
	if n.DrainPerS["1"] <= 0 || n.DrainPerS["3"] <= 0 || n.DrainRatio <= 0 || len(n.Drain) != 2 {
		t.Errorf("the report is %+v", report)
	}
	r := s.run("bench", "nodes", "--only", "http.save")
	if r.code != exitWrongUse {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	contains(t, r.stderr, `bench nodes does not measure "http.save"; it measures nodes.drain.1, nodes.drain.3, nodes.flood.1, nodes.flood.3, nodes.punctual, nodes.rolling`)
}

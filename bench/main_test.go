package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/testkit/usage"
)

// TestMain is also the program that measurements start once more.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := do(context.Background(), os.Args[1:], os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(dbtest.WithServers(m))
}

var errOnFire = errors.New("the machine is on fire")

// tiny makes a run so small that its figures mean nothing.
func tiny(db dbtest.Database, only ...string) *options {
	return &options{rows: 1000, viewers: 20, rate: 50, nodes: 2, load: 20, Options: bench.Options{
		DSN: db.DSN, Only: only, Scale: 0.005, Repeats: 1, Progress: func(int, int, string) {},
	}}
}

// measure runs measurements and checks what does not depend on the speed of a machine that runs other tests meanwhile.
// Excused measurements may be left out.
func measure(t *testing.T, o *options, excused ...string) (*bench.Report, map[string]float64) {
	t.Helper()
	report, err := o.run(t.Context())
	// A machine may stand still for longer than a measurement may take.
	for tries := 1; err != nil && tries < 3; tries++ {
		t.Log(err)
		report, err = o.run(t.Context())
	}
	servertest.OK(t, err)
	values := make(map[string]float64)
	for _, l := range report.Lines {
		values[l.Key] = l.Value
	}
	_, err = usage.CPU()
	unsupported := errors.Is(err, errors.ErrUnsupported)
	for _, m := range o.measurements() {
		chosen := slices.ContainsFunc(o.Only, func(name string) bool { return strings.HasPrefix(m.Name+".", name+".") })
		leftOut := report.Meta.LeftOut[m.Name] != "" && (unsupported || slices.Contains(excused, m.Name))
		for _, f := range m.Figures {
			derived := strings.HasSuffix(f[0], "ratio") && m.Derive != nil // from what may not be measured here
			// A table of so few rows has no next page of some lists.
			_, measured := values[f[0]]
			if chosen && !measured && !leftOut && !derived && !strings.Contains(f[0], "_next") {
				t.Errorf("no %s", f[0])
			}
		}
	}
	for key, value := range values {
		for _, wrong := range []string{".early", ".lost", ".duplicates", ".attempts_burned"} {
			if strings.HasSuffix(key, wrong) && value != 0 {
				t.Errorf("%s is %v", key, value)
			}
		}
	}
	return report, values
}

func TestKeysAreDeclaredOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range new(options).measurements() {
		if m.Measure == nil || len(m.Figures) == 0 {
			t.Errorf("%s is not complete", m.Name)
		}
		for _, f := range m.Figures {
			if seen[f[0]] || f[1] == "" {
				t.Errorf("%s: %+v", m.Name, f)
			}
			seen[f[0]] = true
		}
	}
}

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-quick -full": "not both", "-rows -1": "more than 0", "-viewers 0": "more than 0", "-scale 0": "more than 0",
		"nodes more": "one group", "ui -cold": "an earlier run", "ui -database shop": "no benchmark has kept",
		"ui -cold -repeats 2 -database " + bench.Prefix + "kept": "one turn",
		"ui -keep -database " + bench.Prefix + "kept":            "kept anyway", "drian": `no measurement "drian"`,
	} {
		err := do(t.Context(), append(strings.Fields(args), "-dsn", "sqlite:unused.db"), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestAReportIsATableOrJSON(t *testing.T) {
	for args, want := range map[string]string{"": "save_tx.per_s", "-json": `"per_s":`} {
		var out strings.Builder
		args := append(strings.Fields(args), "-scale", "0.01", "-only", "save_tx", "-dsn",
			"sqlite:"+filepath.Join(t.TempDir(), "x.db"))
		servertest.OK(t, do(t.Context(), args, &out))
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "SQLite") {
			t.Errorf("with %q it prints %s", args, out.String())
		}
	}
}

func TestWhatSavesAndChildrenMeasure(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db, "save_tx", "save.callers_256", "keyed", "memory", "restart", "purge", "growth")
		measure(t, o, "restart", "purge")
	})
}

func TestShortDelaysAreMeasured(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		all := []string{"lateness.short", "lateness.short_here", "lateness.short_tx", "lateness.short_pop"}
		measure(t, tiny(db, all...), all...)
	})
}

func TestWhatTheServiceIsMeasuredBy(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db, "http.save", "http.save_batch", "http.pop.1000", "http.poll", "http.idle", "http.webhook")
		if db.Kind != dbtest.SQLite {
			o.Only = []string{"http.pop.5000", "http.idle"} // the others take too long
		}
		report, values := measure(t, o, "http.pop.1000", "http.pop.5000", "http.idle", "http.poll", "http.webhook.1000")
		for key, value := range values {
			if strings.HasSuffix(key, ".per_s") && value <= 0 {
				t.Errorf("%s is %v", key, value)
			}
		}
		if out := report.Meta.LeftOut; (out["http.idle"] != "") != (db.Kind == dbtest.SQLite) {
			t.Errorf("left out: %v", out)
		}
	})
}

func TestWhatSeveralProcessesMeasure(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db, "nodes")
		if db.Kind != dbtest.SQLite {
			// The rolling restart takes too long.
			o.Only = []string{"nodes.drain.1", "nodes.drain.3", "nodes.flood.1", "nodes.flood.3", "nodes.punctual"}
		}
		measure(t, o, "nodes.punctual", "nodes.crowd", "nodes.dbrestart")
	})
}

func TestSchedulesAreMeasured(t *testing.T) {
	t.Parallel()
	o := tiny(dbtest.New(t, dbtest.SQLite), "schedules.backfill")
	measure(t, o, "schedules.backfill")
}

func TestOpenDashboardsAreMeasured(t *testing.T) {
	t.Parallel()
	o := tiny(dbtest.New(t, dbtest.SQLite), "ui.viewers")
	report, values := measure(t, o, "ui.viewers")
	set := report.Meta.Settings
	if set["viewers"] != "20" || set["rate"] != "50" || values["ui.viewers.failed"] != 0 {
		t.Errorf("%v, %v", set, values)
	}
}

func TestAKeptTableIsReadCold(t *testing.T) {
	t.Parallel()
	o := tiny(dbtest.New(t, dbtest.SQLite), "ui.reads")
	o.keep = true
	report, _ := measure(t, o, "ui.reads")
	kept := report.Meta.Settings["database"]
	t.Cleanup(func() { servertest.OK(t, os.RemoveAll(filepath.Dir(kept))) })
	cold := tiny(dbtest.Database{DSN: o.DSN}, "cold")
	cold.database = kept
	report, values := measure(t, cold, "cold")
	if len(values) < len(uiSingleReads) || report.Meta.Settings["database"] != kept {
		t.Errorf("of %d reads %d were measured, in %q", len(uiReads), len(values), report.Meta.Settings["database"])
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what an earlier run has kept is gone: %v", err)
	}
}

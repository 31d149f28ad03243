package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/bench/usage"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// measure runs measurements and checks what does not depend on the speed of a machine that runs other tests meanwhile.
// Excused measurements may be left out.
func measure(t *testing.T, o Options, excused ...string) (*Report, map[string]float64) {
	t.Helper()
	report, err := Run(t.Context(), o)
	// A machine may stand still for longer than a measurement may take.
	for tries := 1; err != nil && tries < 3; tries++ {
		t.Log(err)
		report, err = Run(t.Context(), o)
	}
	servertest.OK(t, err)
	values := make(map[string]float64)
	for _, l := range report.Lines {
		values[l.Key] = l.Value
	}
	_, err = usage.CPU()
	unsupported := errors.Is(err, errors.ErrUnsupported)
	for _, m := range o.chosen() {
		leftOut := report.Meta.LeftOut[m.name] != "" && (unsupported || slices.Contains(excused, m.name))
		for _, f := range m.figures {
			if _, measured := values[f.key]; !measured && !leftOut {
				t.Errorf("no %s", f.key)
			}
		}
	}
	for key, value := range values {
		for _, wrong := range []string{".early", ".lost", ".duplicates", ".attempts_burned"} {
			if strings.HasSuffix(key, wrong) && value != 0 {
				t.Errorf("%s is %v", key, value)
			}
		}
		for _, ascending := range [][]string{{"p50_ms", "p99_ms", "p999_ms", "max_ms"}, {"_mb", "_peak_mb"}} {
			for i, lower := range ascending {
				name, named := strings.CutSuffix(key, lower)
				for _, higher := range ascending[i+1:] {
					if more, measured := values[name+higher]; named && measured && value > more {
						t.Errorf("%s is %v, and %s is %v", key, value, higher, more)
					}
				}
			}
		}
	}
	return report, values
}

func TestARunMeasuresRawAndDelaytask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(t, db, "raw", "save", "save_bulk", "save_tx", "drain")
		if db.Kind != dbtest.SQLite {
			o.Repeats = 1 // the others take too long
		}
		report, values := measure(t, o)
		for _, l := range report.Lines {
			turns := o.Repeats
			if strings.HasSuffix(l.Key, "ratio") {
				turns = 1
			}
			if len(l.Turns) != turns || l.Value <= 0 || l.About == "" {
				t.Errorf("figure %+v", l)
			}
		}
		near := func(ratio, want float64) bool { return math.Abs(ratio-want) < 0.001+0.02*want } // figures are rounded
		claim, settle := values["raw.claim_batch_per_s"], values["raw.settle_batch_per_s"]
		if !near(values["save.ratio"], values["save.per_s"]/values["raw.insert_single_per_s"]) ||
			!near(values["save_bulk.ratio"], values["save_bulk.per_s"]/values["raw.insert_batch_per_s"]) ||
			!near(values["drain.ratio"], values["drain.per_s"]/(1/(1/claim+1/settle))) {
			t.Errorf("ratios are not those of the medians: %v", values)
		}
		if m := report.Meta; m.Server == "" || m.Version == "" || m.Machine.CPUs < 1 || m.Duration <= 0 ||
			m.Repeats != o.Repeats || m.Rows != 1000 ||
			(m.Forms["raw.settle_batch"] == "") != (db.Kind == dbtest.SQLite) || len(m.Settings) < 2 {
			t.Errorf("meta is %+v", m)
		}
	})
}

func TestWhatChildrenMeasure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(t, db, "lateness.500", "latency_now", "keyed", "memory", "restart", "purge", "growth")
		o.Repeats = 1
		measure(t, o, "lateness.500", "restart", "purge")
	})
}

func TestWhatTheServiceIsMeasuredBy(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(t, db, "http.save", "http.save_batch", "http.pop.1000", "http.poll", "http.idle", "http.webhook")
		if db.Kind != dbtest.SQLite {
			o.Only = []string{"http.pop.5000", "http.idle"} // the others take too long
		}
		o.Repeats = 1
		report, values := measure(t, o, o.Only...)
		for key, value := range values {
			if strings.HasSuffix(key, ".per_s") && value <= 0 {
				t.Errorf("%s is %v", key, value)
			}
		}
		if out := report.Meta.LeftOut; (out["http.idle"] != "") != (db.Kind == dbtest.SQLite) || len(out) > 1 {
			t.Errorf("left out: %v", out)
		}
	})
}

func TestWhatSeveralProcessesMeasure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(t, db, "nodes")
		if db.Kind != dbtest.SQLite {
			// The others take too long.
			o.Only = []string{"nodes.drain.1", "nodes.drain.3", "nodes.flood.1", "nodes.flood.3", "nodes.punctual"}
		}
		o.Repeats = 1
		measure(t, o, "nodes.punctual")
	})
}

func TestWhatPeopleReadIsMeasured(t *testing.T) {
	o := tiny(t, dbtest.New(t, dbtest.SQLite), "ui.reads")
	o.Repeats = 1
	report, err := Run(t.Context(), o)
	servertest.OK(t, err)
	if why := report.Meta.LeftOut["ui.reads"]; why != "" {
		t.Skip(why)
	}
	measured := map[string]bool{}
	for _, l := range report.Lines {
		measured[l.Key] = true
	}
	for _, f := range uiMeasured.figures {
		// A table of so few rows has no next page of some lists.
		if !measured[f.key] && !strings.Contains(f.key, "_next.") {
			t.Errorf("no %s", f.key)
		}
	}
	if !measured["ui.newest_next.p50_ms"] {
		t.Error("the next page of the newest saves was not read")
	}
}

func TestAKeptTableIsReadCold(t *testing.T) {
	db := dbtest.New(t, dbtest.SQLite)
	o := tiny(t, db, "ui.reads")
	o.Repeats, o.Keep = 1, true
	report, err := Run(t.Context(), o)
	servertest.OK(t, err)
	kept := report.Meta.Database
	t.Cleanup(func() { servertest.OK(t, os.RemoveAll(filepath.Dir(kept))) })
	o.Only, o.Keep, o.Database = []string{"cold"}, false, kept
	report, err = Run(t.Context(), o)
	servertest.OK(t, err)
	if len(report.Lines) < len(uiSingleReads) || report.Meta.Database != kept {
		t.Errorf("of %d reads %d were measured, in %q", len(uiReads), len(report.Lines), report.Meta.Database)
	}
	for _, l := range report.Lines {
		if len(l.Turns) != 1 {
			t.Errorf("%s was read %d times", l.Key, len(l.Turns))
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what an earlier run has kept is gone: %v", err)
	}
}

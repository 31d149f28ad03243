package bench

import (
	"errors"
	"slices"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/usage"
)

// TestWhatChildrenMeasure says nothing about how good the figures are: other tests run meanwhile.
func TestWhatChildrenMeasure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db.DSN, "lateness.500", "latency_now", "keyed", "memory", "restart", "purge", "growth")
		o.Repeats, o.Child, o.scratch = 1, []string{childArgument}, scratchOwner(db)
		report, err := Run(t.Context(), o)
		for tries := 1; err != nil && tries < 3; tries++ { // a machine may stand still for longer than a measurement may take
			t.Log(err)
			report, err = Run(t.Context(), o)
		}
		if err != nil {
			t.Fatal(err)
		}
		values := make(map[string]float64)
		for _, l := range report.Lines {
			values[l.Key] = l.Value
		}
		for _, m := range o.chosen() {
			for _, f := range m.figures {
				if _, measured := values[f.key]; !measured && !excused(report.Meta, m.name) {
					t.Errorf("no %s", f.key)
				}
			}
		}
		for _, key := range []string{"lateness.500.early", "lateness.500.lost", "lateness.500.duplicates"} {
			if values[key] != 0 {
				t.Errorf("%s is %v", key, values[key])
			}
		}
		for _, ascending := range [][]string{
			{"lateness.500.p50_ms", "lateness.500.p99_ms", "lateness.500.p999_ms", "lateness.500.max_ms"},
			{"latency_now.p50_ms", "latency_now.p99_ms", "latency_now.max_ms"},
			{"latency_now.other_process.p50_ms", "latency_now.other_process.p99_ms", "latency_now.other_process.max_ms"},
			{"restart.lateness_p99_ms", "restart.lateness_max_ms"},
			{"memory.idle_mb", "memory.idle_peak_mb"},
			{"memory.timers_mb", "memory.timers_peak_mb"},
		} {
			var figures []float64
			for _, key := range ascending {
				figures = append(figures, values[key])
			}
			if !slices.IsSorted(figures) {
				t.Errorf("%v are %v", ascending, figures)
			}
		}
		if left := scratches(t, db); len(left) > 0 {
			t.Errorf("it leaves %v", left)
		}
	})
}

// excused tells measurements that a busy machine, or one that is not Linux, need not be able to take.
func excused(m Meta, name string) bool {
	_, err := usage.CPU()
	unsupported := errors.Is(err, errors.ErrUnsupported)
	return m.LeftOut[name] != "" && (unsupported || name == "lateness.500" || name == "restart" || name == "purge")
}

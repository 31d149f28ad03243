package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
)

// TestWhatTheServiceIsMeasuredBy says nothing about how good the figures are: other tests run meanwhile.
func TestWhatTheServiceIsMeasuredBy(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db.DSN, "http.save", "http.save_batch", "http.pop.1000", "http.poll", "http.idle", "http.webhook")
		if db.Kind != dbtest.SQLite {
			o.Only = []string{"http.pop.5000", "http.idle"} // to be done soon
		}
		o.Repeats, o.Child, o.scratch = 1, []string{childArgument}, scratchOwner(db)
		report, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		values := make(map[string]float64)
		for _, l := range report.Lines {
			values[l.Key] = l.Value
		}
		for _, m := range o.chosen() {
			for _, f := range m.figures {
				if _, measured := values[f.key]; !measured && report.Meta.LeftOut[m.name] == "" {
					t.Errorf("no %s", f.key)
				}
				if strings.HasSuffix(f.key, ".per_s") && values[f.key] <= 0 && report.Meta.LeftOut[m.name] == "" {
					t.Errorf("%s is %v", f.key, values[f.key])
				}
			}
		}
		if out := report.Meta.LeftOut; (out["http.idle"] != "") != (db.Kind == dbtest.SQLite) || len(out) > 1 {
			t.Errorf("left out: %v", out)
		}
		for _, name := range []string{"http.pop.1000", "http.pop.5000", "http.webhook.1000"} {
			for _, wrong := range []string{".early", ".lost", ".duplicates"} {
				if values[name+wrong] != 0 {
					t.Errorf("%s is %v", name+wrong, values[name+wrong])
				}
			}
			ascending := []float64{values[name+".p50_ms"], values[name+".p99_ms"], values[name+".max_ms"]}
			if !slices.IsSorted(ascending) {
				t.Errorf("%s: %v", name, ascending)
			}
		}
	})
}

package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestARunMeasuresRawAndDelaytask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db, "raw", "save", "save_bulk", "drain", "lateness.500")
		if db.Kind != dbtest.SQLite {
			o.Repeats = 1 // the others take too long
		}
		report, err := Run(t.Context(), Measurements, o)
		servertest.OK(t, err)
		values := make(map[string]float64)
		for _, l := range report.Lines {
			values[l.Key] = l.Value
			turns := o.Repeats
			if strings.HasSuffix(l.Key, "ratio") {
				turns = 1
			}
			wrong := strings.HasSuffix(l.Key, ".early") || strings.HasSuffix(l.Key, ".lost") ||
				strings.HasSuffix(l.Key, ".duplicates")
			if len(l.Turns) != turns || l.Value < 0 || wrong != (l.Value == 0) {
				t.Errorf("figure %+v", l)
			}
		}
		chosen, err := o.choose(Measurements)
		servertest.OK(t, err)
		for _, m := range chosen {
			for _, f := range m.Figures {
				if _, measured := values[f[0]]; !measured && report.Meta.LeftOut[m.Name] == "" {
					t.Errorf("no %s", f[0])
				}
			}
		}
		near := func(ratio, want float64) bool { return math.Abs(ratio-want) < 0.001+0.02*want } // figures are rounded
		claim, settle := values["raw.claim_batch_per_s"], values["raw.settle_batch_per_s"]
		if !near(values["save.ratio"], values["save.per_s"]/values["raw.insert_single_per_s"]) ||
			!near(values["save_bulk.ratio"], values["save_bulk.per_s"]/values["raw.insert_batch_per_s"]) ||
			!near(values["drain.ratio"], values["drain.per_s"]/(1/(1/claim+1/settle))) {
			t.Errorf("ratios are not of the medians: %v", values)
		}
		if m := report.Meta; m.Server == "" || m.Version == "" || m.Machine == "" || m.Duration <= 0 ||
			m.Repeats != o.Repeats || len(m.Settings) < 2 {
			t.Errorf("meta is %+v", m)
		}
	})
}

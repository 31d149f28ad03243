package bench

import (
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestABudgetIsCompleteOrSaysWhatIsMissing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db, "drain")
		o.Budget = true
		report, err := Run(t.Context(), Measurements, o)
		servertest.OK(t, err)
		values := make(map[string]float64)
		for _, l := range report.Lines {
			if values[l.Key] = l.Value; len(l.Turns) != o.Repeats {
				t.Errorf("figure %+v", l)
			}
		}
		for _, g := range new(Database).gauges(nil) {
			key := g.Figure[0]
			value, measured := values[key]
			if why := report.Meta.LeftOut[key]; measured == (why != "") {
				t.Errorf("%s is %v, and left out because of %q", key, value, why)
			}
			coarse := key == "drain.server_cpu_us" || key == "drain.idle_us"
			if measured && value <= 0 && !coarse {
				t.Errorf("%s is %v", key, value)
			}
		}
	})
}

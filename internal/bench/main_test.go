package bench

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// tiny makes a run so small that its figures mean nothing.
func tiny(dsn string, only ...string) Options {
	return Options{DSN: dsn, Only: only, Scale: 0.02, Repeats: 2, Rows: 1000}
}

// newRun is a run whose turns the test takes.
func newRun(t *testing.T, o Options) *run {
	t.Helper()
	o = o.withDefaults()
	place, err := newPlace(o.DSN, o.scratch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := place.leave(); err != nil {
			t.Error(err)
		}
	})
	r := &run{Options: o, workload: o.workload(), place: place, figures: newFigures()}
	r.meta.Forms = make(map[string]string)
	return r
}

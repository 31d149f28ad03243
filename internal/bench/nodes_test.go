package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/nodebench"
	"github.com/delaytask/delaytask/internal/dbtest"
)

// TestWhatSeveralProcessesMeasure says nothing about how good the figures are: other tests run meanwhile.
func TestWhatSeveralProcessesMeasure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		o := tiny(db.DSN, "nodes")
		if db.Kind != dbtest.SQLite {
			o.Only = []string{"nodes.drain.1", "nodes.drain.3", "nodes.flood.1", "nodes.flood.3", "nodes.punctual"} // to be done soon
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
				if _, measured := values[f.key]; !measured && (report.Meta.LeftOut[m.name] == "" || m.name != "nodes.punctual") {
					t.Errorf("no %s", f.key)
				}
			}
		}
		for _, name := range []string{"nodes.punctual", "nodes.rolling"} {
			for _, wrong := range []string{".early", ".lost", ".duplicates", ".attempts_burned"} {
				if values[name+wrong] != 0 {
					t.Errorf("%s is %v", name+wrong, values[name+wrong])
				}
			}
			if late := []float64{values[name+".p50_ms"], values[name+".p99_ms"], values[name+".max_ms"]}; !slices.IsSorted(late) {
				t.Errorf("%s: %v", name, late)
			}
		}
		if left := scratches(t, db); len(left) > 0 {
			t.Errorf("it leaves %v", left)
		}
	})
}

func TestWhatIsBurnedAndLostIsCounted(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tasks := []delaytask.Task{
		{ID: 1, Attempt: 1, Expected: began}, {ID: 2, Attempt: 3, Expected: began}, {ID: 3, Attempt: 1, CrashCount: 1, Expected: began},
		{ID: 4, Attempt: 0, Expected: began},
	}
	if got := burned(tasks); got != 3 {
		t.Errorf("burned are %d, want 3", got)
	}
	f := newFigures()
	const saved = 6
	f.addRolling(tasks, saved, began, began, nodebench.NewFleet(0, nil))
	if lost, _ := f.median("nodes.rolling.lost"); lost != saved { // four that no process started, and two that are not in the table
		t.Errorf("lost are %v, want %d", lost, saved)
	}
}

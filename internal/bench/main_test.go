package bench

import (
	"cmp"
	"context"
	"errors"
	"math"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

var errOnFire = errors.New("the machine is on fire")

// tiny makes a run so small that its figures mean nothing.
func tiny(db dbtest.Database, only ...string) Options {
	return Options{DSN: db.DSN, Only: only, Scale: 0.005, Repeats: 2, Progress: func(int, int, string) {}}
}

// runner returns a run without turns.
func runner(o Options) *Runner {
	o.Scale, o.Progress = cmp.Or(o.Scale, 1), func(int, int, string) {}
	return &Runner{Options: o, Meta: Meta{LeftOut: map[string]string{}}, figures: map[string][]float64{}}
}

// onFresh gives f a database on each server.
func onFresh(t *testing.T, f func(context.Context, *Runner, *Database) error) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		r := runner(tiny(db))
		servertest.OK(t, r.OnFresh(t.Context(), func(ctx context.Context, d *Database) error { return f(ctx, r, d) }))
	})
}

func TestMedianIsTheMiddle(t *testing.T) {
	r := runner(Options{})
	if _, measured := r.Median("a"); measured {
		t.Error("nothing has a median")
	}
	for _, tt := range []struct{ add, want float64 }{{9, 9}, {1, 5}, {2, 2}, {3, 2.5}, {100, 3}} {
		r.Add("a", tt.add)
		if got, _ := r.Median("a"); got != tt.want {
			t.Errorf("after %v the median is %v, want %v", tt.add, got, tt.want)
		}
	}
}

func TestARatioNeedsBothFigures(t *testing.T) {
	r := runner(Options{})
	r.Add("of", 30)
	if r.AddRatio("ratio", "of", "to"); len(r.figures["ratio"]) != 0 {
		t.Error("there is a ratio to nothing")
	}
	r.Add("to", 20)
	if r.AddRatio("ratio", "of", "to"); r.figures["ratio"][0] != 1.5 {
		t.Errorf("the ratio is %v", r.figures["ratio"])
	}
}

func TestWhatIsBelowAHundredHasThreeDecimals(t *testing.T) {
	for value, want := range map[float64]float64{12.34567: 12.346, 99.9996: 100, 123.4567: 123, 49301.5: 49302} {
		if got := rounded(value); got != want {
			t.Errorf("%v is %v, want %v", value, got, want)
		}
	}
	if got := rounded(-0.0001); math.Signbit(got) {
		t.Errorf("nothing is %v", got)
	}
}

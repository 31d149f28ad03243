package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/bench/usage"
)

// counting is a measurement that counts its turns and ends with err.
func counting(name string, once bool, order *[]string, err error) measurement {
	return measurement{
		name: name, once: once, takes: func(workload) time.Duration { return 0 },
		measure: func(context.Context, *run) error {
			*order = append(*order, name)
			return err
		},
	}
}

func TestWhatTakesLongHasOneTurnAtTheEnd(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{}, "raw save raw save raw save long"},
		{Options{Turns: 4}, "raw save raw save raw save raw save long"},
		{Options{Turns: 4, Repeats: 2}, "raw save raw save long long"},
	} {
		var order []string
		tt.o.DSN = "sqlite:unused.db"
		err := newRun(t, tt.o).turns(t.Context(), []measurement{
			counting("raw", false, &order, nil), counting("long", true, &order, nil),
			counting("save", false, &order, nil),
		})
		if got := strings.Join(order, " "); err != nil || got != tt.want {
			t.Errorf("%+v: turns %s, %v", tt.o, got, err)
		}
	}
}

var errOnFire = errors.New("the machine is on fire")

func TestWhatCannotBeMeasuredIsLeftOut(t *testing.T) {
	var order []string
	r := newRun(t, Options{DSN: "sqlite:unused.db", Repeats: 1})
	err := r.turns(t.Context(), []measurement{
		counting("clock", false, &order, &leftOut{errors.New("another clock")}), counting("save", false, &order, nil),
	})
	if err != nil || !slices.Equal(order, []string{"clock", "save"}) {
		t.Errorf("turns %v, %v", order, err)
	}
	if len(r.meta.LeftOut) != 1 || r.meta.LeftOut["clock"] != "another clock" {
		t.Errorf("left out: %v", r.meta.LeftOut)
	}
	err = r.turns(t.Context(), []measurement{counting("save", false, &order, errOnFire)})
	if !errors.Is(err, errOnFire) {
		t.Errorf("any other error: %v", err)
	}
}

func TestStolenTimeIsCountedForEachMeasurement(t *testing.T) {
	if _, _, err := usage.Stolen(); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	s := make(stolen)
	for range 2 {
		if err := s.during("save", func() error { return errOnFire }); !errors.Is(err, errOnFire) {
			t.Errorf("what went wrong came out as %v", err)
		}
	}
	s["save"] = ticks{s["save"].taken + 25, s["save"].all + 75}
	s["none"] = ticks{}
	got := s.percent()
	if _, known := got["none"]; known || got["save"] <= 0 || got["save"] > 100 {
		t.Errorf("percents are %v", got)
	}
}

func TestMedianIsTheMiddle(t *testing.T) {
	f := newFigures()
	if _, measured := f.median("a"); measured {
		t.Error("nothing has a median")
	}
	for _, tt := range []struct{ add, want float64 }{{9, 9}, {1, 5}, {2, 2}, {3, 2.5}, {100, 3}} {
		f.add("a", tt.add)
		if got, _ := f.median("a"); got != tt.want {
			t.Errorf("after %v the median is %v, want %v", tt.add, got, tt.want)
		}
	}
}

func TestARatioNeedsBothFigures(t *testing.T) {
	f := newFigures()
	f.add("of", 30)
	if f.ratio("ratio", "of", "to"); len(f.values["ratio"]) != 0 {
		t.Error("there is a ratio to nothing")
	}
	f.add("to", 20)
	if f.ratio("ratio", "of", "to"); f.values["ratio"][0] != 1.5 {
		t.Errorf("the ratio is %v", f.values["ratio"])
	}
}

func TestFiguresAreRoundedByTheirUnit(t *testing.T) {
	for key, want := range map[string]float64{
		"save.per_s": 12, "save.p99_ms": 12.346, "save.ratio": 12.346, "cpu.idle_pct": 12.35, "memory.idle_mb": 12.3,
	} {
		if got := rounded(key, 12.34567); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if got := rounded("cpu.idle_pct", -0.001); math.Signbit(got) {
		t.Errorf("nothing is %v", got)
	}
}

func TestProgressGoesOnWhileSomethingIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []time.Duration
		p := Progress{Name: "save", Done: time.Minute, Total: time.Hour}
		err := p.during(t.Context(), func(p Progress) { reported = append(reported, p.Done) }, time.Second,
			func(context.Context) error {
				time.Sleep(2100 * time.Millisecond) // longer than expected
				return nil
			})
		if err != nil || len(reported) != 11 || reported[0] != time.Minute || reported[10] != time.Minute+time.Second {
			t.Errorf("reported %v, %v", reported, err)
		}
	})
}

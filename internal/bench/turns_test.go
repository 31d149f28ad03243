package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/usage"
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
		repeats int
		want    []string
	}{
		{0, []string{"raw", "save", "raw", "save", "raw", "save", "long"}},
		{2, []string{"raw", "save", "raw", "save", "long", "long"}},
	} {
		var order []string
		r := newRun(t, Options{DSN: "sqlite:unused.db", Repeats: tt.repeats})
		err := r.turns(t.Context(), []measurement{
			counting("raw", false, &order, nil), counting("long", true, &order, nil), counting("save", false, &order, nil),
		})
		if err != nil || !slices.Equal(order, tt.want) {
			t.Errorf("repeats %d: turns %v, %v", tt.repeats, order, err)
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
	if err := r.turns(t.Context(), []measurement{counting("save", false, &order, errOnFire)}); !errors.Is(err, errOnFire) {
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

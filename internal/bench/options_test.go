package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestANameThatNoMeasurementHasIsRefused(t *testing.T) {
	for _, name := range []string{"drian", "raw.nosuch", "la", ""} {
		_, err := Run(t.Context(), Measurements, Options{Only: []string{"save", name}})
		if !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), "no measurement \""+name+"\"") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNamesGroupsAndAQuickRunChooseMeasurements(t *testing.T) {
	all := append(slices.Clone(Measurements), Measurement{Name: "nodes", Apart: true})
	for want, o := range map[int]Options{
		2: {Only: []string{"drain", "save"}}, 4: {Only: []string{"lateness"}}, 5: {Only: []string{"raw"}},
		1: {Only: []string{"nodes"}}, len(Measurements): {}, len(Measurements) - 2: {Quick: true},
	} {
		if got, err := o.choose(all); err != nil || len(got) != want {
			t.Errorf("%+v chooses %v, want %d; %v", o, Names(got), want, err)
		}
	}
}

// TestKeysAreDeclaredOnce keeps one measurement from adding to the figures of another.
func TestKeysAreDeclaredOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range Measurements {
		for _, f := range m.Figures {
			if seen[f[0]] || f[1] == "" {
				t.Errorf("%s: %+v", m.Name, f)
			}
			seen[f[0]] = true
		}
	}
}

// counting is a measurement that counts its turns and ends with err.
func counting(name string, turns int, order *[]string, err error) Measurement {
	return Measurement{Name: name, Turns: turns, Measure: func(context.Context, *Runner) error {
		*order = append(*order, name)
		return err
	}}
}

func TestWhatHasOneTurnComesAtTheEnd(t *testing.T) {
	for repeats, want := range []string{"raw save raw save raw save save long", "raw save long",
		"raw save raw save long long"} {
		var order []string
		err := runner(Options{Repeats: repeats}).turns(t.Context(), []Measurement{
			counting("raw", 0, &order, nil), counting("long", 1, &order, nil), counting("save", 4, &order, nil),
		})
		if got := strings.Join(order, " "); err != nil || got != want {
			t.Errorf("repeats %d: turns %s, %v", repeats, got, err)
		}
	}
}

func TestWhatCannotBeMeasuredIsLeftOut(t *testing.T) {
	var order []string
	r := runner(Options{Repeats: 1})
	err := r.turns(t.Context(), []Measurement{
		counting("clock", 0, &order, LeftOut("another clock")), counting("save", 0, &order, nil),
	})
	if err != nil || !slices.Equal(order, []string{"clock", "save"}) {
		t.Errorf("turns %v, %v", order, err)
	}
	if len(r.Meta.LeftOut) != 1 || r.Meta.LeftOut["clock"] != "another clock" {
		t.Errorf("left out: %v", r.Meta.LeftOut)
	}
	err = r.turns(t.Context(), []Measurement{counting("save", 0, &order, errOnFire)})
	if !errors.Is(err, errOnFire) {
		t.Errorf("any other error: %v", err)
	}
}

package bench

import (
	"errors"
	"strings"
	"testing"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"not both":                   {Quick: true, Full: true},
		"rows are -1":                {Rows: -1},
		"repeats are -1":             {Repeats: -1},
		"turns are -1":               {Turns: -1},
		"scale is -1":                {Scale: -1},
		`no measurement "drian"`:     {Only: []string{"save", "drian"}},
		`no measurement "raw.nosuc"`: {Only: []string{"raw.nosuc"}},
		`no measurement ""`:          {Only: []string{""}},
		"viewers are -1":             {Viewers: -1},
		"the rate is -1":             {Rate: -1},
		"none that a benchmark has":  {Database: "shop"},
		"that an earlier run":        {Only: []string{"cold"}},
		"one turn":                   {Only: []string{"cold"}, Database: scratchPrefix + "kept", Repeats: 2},
	} {
		_, err := Run(t.Context(), o)
		if !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestQuickIsAPartOfAll(t *testing.T) {
	quick, all := Options{Quick: true}.chosen(), Options{}.chosen()
	apart := (Options{Only: []string{"http", "nodes", "schedules", "ui", "cold", "rollup"}}).chosen()
	if len(quick) == 0 || len(quick) > len(all) || len(apart) == 0 || len(all)+len(apart) != len(registry) {
		t.Errorf("%d of %d are quick, %d apart", len(quick), len(all), len(apart))
	}
	for _, o := range []Options{{}, {Quick: true}, {Full: true}, {Scale: 1e-9}} {
		if w := o.withDefaults().workload(); w.batch < 1 || w.drain < 1 || w.rows < 1 {
			t.Errorf("%+v has the workload %+v", o, w)
		}
	}
}

// TestKeysAreDeclaredOnce keeps one measurement from adding to the figures of another.
func TestKeysAreDeclaredOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range registry {
		if m.takes == nil || m.measure == nil || len(m.figures) == 0 {
			t.Errorf("%s is not complete", m.name)
		}
		for _, f := range m.figures {
			if seen[f.key] || f.about == "" {
				t.Errorf("%s: %+v", m.name, f)
			}
			seen[f.key] = true
		}
	}
}

func TestAMeasurementIsCalledByItsNameItsGroupAndItsFigures(t *testing.T) {
	for name, want := range map[string]int{
		"cpu": 1, "memory": 2, "latency_now": 2, "latency_now.other_process": 1, "lateness": 9, "late": 0,
		"nodes.drain": 2, "raw": 4, "drain": 1,
	} {
		if got := (Options{Only: []string{name}}).chosen(); len(got) != want {
			t.Errorf("%s means %d measurements, want %d", name, len(got), want)
		}
	}
}

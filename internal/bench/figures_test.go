package bench

import "testing"

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
}

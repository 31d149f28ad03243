package row

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestClassesOfLatenessCoverEveryValueInOrder(t *testing.T) {
	if LateClass(-time.Second) != 0 || LateClass(1<<63-1) != LateClasses-1 {
		t.Error("what is out of range is in no class at the end")
	}
	for class := range LateClasses - 1 {
		from, to := LateFrom(class), LateFrom(class+1)
		if LateClass(from) != class || LateClass(to-time.Microsecond) != class || LateClass(to) != class+1 {
			t.Fatalf("class %d is not from %v to %v", class, from, to)
		}
		if class >= 4 && to > from*5/4 {
			t.Errorf("class %d is too wide: from %v to %v", class, from, to)
		}
	}
}

// Percentiles of histograms that were added up are near the percentiles of all values together.
func TestPercentilesOfAHistogramAreNearTheRealOnes(t *testing.T) {
	var values []time.Duration
	counts := map[int]int64{}
	for range 20_000 {
		late := time.Duration(rand.ExpFloat64()*float64(3*time.Millisecond)) + 50*time.Microsecond
		values = append(values, late)
		counts[LateClass(late)]++
	}
	slices.Sort(values)
	var h Histogram
	for class := range LateClasses {
		if counts[class] > 0 {
			h = append(h, ClassCount{class, counts[class]})
		}
	}
	most := values[len(values)-1]
	for _, share := range []float64{0.01, 0.5, 0.95, 0.99, 1} {
		want := values[int(share*float64(len(values)-1))]
		if got := h.Quantile(share, most); got < want*9/10 || got > want*11/10 {
			t.Errorf("%v of the values are below %v, the histogram says %v", share, want, got)
		}
	}
	if got := (Histogram{{50, 3}}).Quantile(0.99, LateFrom(50)+1); got != LateFrom(50)+1 {
		t.Errorf("a percentile is %v, above the maximum", got)
	}
}

func TestWhatIsStoredOfAHistogramIsReadBack(t *testing.T) {
	for _, h := range []Histogram{nil, {{0, 1}}, {{3, 1 << 50}, {LateClasses - 1, 7}}} {
		if got := ReadHistogram([]byte(h.Column())); !reflect.DeepEqual(got, h) {
			t.Errorf("%v is read as %v", h, got)
		}
	}
	if got := ReadHistogram([]byte("x:1 2:y 3:4 -1:5 999:6 7 8:-9")); !reflect.DeepEqual(got, Histogram{{3, 4}}) {
		t.Errorf("of garbage %v was read", got)
	}
}

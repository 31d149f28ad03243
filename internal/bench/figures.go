package bench

import (
	"math"
	"slices"
	"strings"
)

// figures gathers the values of all turns by key.
type figures struct{ values map[string][]float64 }

func newFigures() *figures { return &figures{values: make(map[string][]float64)} }

func (f *figures) add(key string, value float64) { f.values[key] = append(f.values[key], value) }

// median returns the middle of what was measured, and false when nothing was.
func (f *figures) median(key string) (float64, bool) {
	values := slices.Sorted(slices.Values(f.values[key]))
	n := len(values)
	if n == 0 {
		return 0, false
	}
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

// ratio adds a key for the median of one figure in terms of another, when both were measured.
func (f *figures) ratio(key, of, to string) {
	a, measured := f.median(of)
	b, also := f.median(to)
	if measured && also && b > 0 {
		f.add(key, a/b)
	}
}

// digits is how many decimals of a key's values mean something.
func digits(key string) int {
	switch {
	case strings.HasSuffix(key, "_ms"), strings.HasSuffix(key, "ratio"), strings.Contains(key, "ratio_"):
		return 3
	case strings.HasSuffix(key, "_pct"), strings.HasSuffix(key, "queries_per_s"):
		return 2
	case strings.HasSuffix(key, "_mb"):
		return 1
	default: // rates and counts
		return 0
	}
}

func rounded(key string, value float64) float64 {
	scale := math.Pow10(digits(key))
	return math.Round(value*scale) / scale
}

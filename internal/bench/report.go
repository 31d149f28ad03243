package bench

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

// Report is the result of a run.
type Report struct {
	Meta  Meta
	Lines []Line // in the order of the measurements
}

// Line is one figure: the median of its turns.
type Line struct {
	Key   string
	About string
	Value float64
	Turns []float64 // in their order; one value for what was derived or measured once
}

// Spread returns the smallest and the largest value.
func (l Line) Spread() (least, most float64) { return slices.Min(l.Turns), slices.Max(l.Turns) }

func (r *Runner) report(chosen []Measurement) *Report {
	report := &Report{Meta: r.Meta}
	for _, m := range chosen {
		for _, f := range m.Figures {
			if value, measured := r.Median(f[0]); measured {
				report.Lines = append(report.Lines, Line{f[0], f[1], rounded(value), r.figures[f[0]]})
			}
		}
	}
	return report
}

// Add adds what a turn measured.
func (r *Runner) Add(key string, value float64) {
	r.figures[key] = append(r.figures[key], rounded(value))
}

// AddPercentiles adds percentiles of durations. ends are how the keys end, such as p50_ms.
func (r *Runner) AddPercentiles(key string, durations []time.Duration, ends ...string) {
	for _, end := range ends {
		of := map[string]float64{"p50_ms": 50, "p99_ms": 99, "p999_ms": 99.9, "max_ms": 100}[end]
		r.Add(key+"."+end, Milliseconds(lateness.Percentile(durations, of)))
	}
}

// AddJudgement adds percentiles of how late tasks started, and how many were early, lost or run twice.
func (r *Runner) AddJudgement(key string, j lateness.Judgement) {
	r.AddPercentiles(key, j.Starts, "p50_ms", "p99_ms", "p999_ms", "max_ms")
	r.Add(key+".early", float64(j.Early))
	r.Add(key+".lost", float64(j.Lost))
	r.Add(key+".duplicates", float64(j.Extra))
}

// AddRatio adds the median of one figure in terms of another, when both were measured.
func (r *Runner) AddRatio(key, of, to string) {
	a, measured := r.Median(of)
	b, also := r.Median(to)
	if measured && also && b > 0 {
		r.Add(key, a/b)
	}
}

// Median returns the middle of what was measured, and false when nothing was.
func (r *Runner) Median(key string) (float64, bool) {
	values := slices.Sorted(slices.Values(r.figures[key]))
	n := len(values)
	if n == 0 {
		return 0, false
	}
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

// Milliseconds is a duration as figures have it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rounded keeps three decimals of what is below 100.
func rounded(value float64) float64 {
	if math.Abs(value) >= 100 {
		return math.Round(value)
	}
	return math.Round(value*1000)/1000 + 0 // -0 is 0
}

// MarshalJSON nests the values by the dots of their keys, and in the same way under "spread" what the turns measured.
func (r *Report) MarshalJSON() ([]byte, error) {
	root := map[string]any{"meta": r.Meta}
	for _, l := range r.Lines {
		nest(root, l.Key, l.Value)
		if len(l.Turns) > 1 {
			least, most := l.Spread()
			nest(root, "spread."+l.Key, map[string]any{"min": least, "max": most, "turns": l.Turns})
		}
	}
	return json.Marshal(root)
}

func nest(object map[string]any, key string, value any) {
	name, rest, more := strings.Cut(key, ".")
	if !more {
		object[name] = value
		return
	}
	if object[name] == nil {
		object[name] = map[string]any{}
	}
	nest(object[name].(map[string]any), rest, value)
}

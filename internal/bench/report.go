package bench

import (
	"encoding/json"
	"slices"
	"strings"
)

// Report is the result of a run.
type Report struct {
	Meta  Meta
	Lines []Line // in the order of the registry
}

// Line is one figure: the median of its turns.
type Line struct {
	Key   string // as in save.per_s
	About string
	Value float64
	Turns []float64 // what the turns measured, in their order; one value for what was derived or measured once
}

// Digits is how many decimals of the values are significant.
func (l Line) Digits() int { return digits(l.Key) }

// Spread returns the smallest and the largest value.
func (l Line) Spread() (least, most float64) { return slices.Min(l.Turns), slices.Max(l.Turns) }

func (r *run) report() *Report {
	report := &Report{Meta: r.meta}
	for _, m := range registry {
		for _, f := range m.figures {
			value, measured := r.figures.median(f.key)
			if !measured {
				continue
			}
			line := Line{Key: f.key, About: f.about, Value: rounded(f.key, value)}
			for _, v := range r.figures.values[f.key] {
				line.Turns = append(line.Turns, rounded(f.key, v))
			}
			report.Lines = append(report.Lines, line)
		}
	}
	return report
}

// spread is how the turns of a figure differ.
type spread struct {
	Min   float64   `json:"min"`
	Max   float64   `json:"max"`
	Turns []float64 `json:"turns"`
}

// MarshalJSON nests the values by the dots of their keys, and beside them in the same way under "spread" what the turns
// measured.
func (r *Report) MarshalJSON() ([]byte, error) {
	root := map[string]any{"meta": r.Meta}
	for _, l := range r.Lines {
		nest(root, l.Key, l.Value)
		if len(l.Turns) > 1 {
			least, most := l.Spread()
			nest(root, "spread."+l.Key, spread{least, most, l.Turns})
		}
	}
	return json.Marshal(root)
}

func nest(object map[string]any, key string, value any) {
	for {
		name, rest, more := strings.Cut(key, ".")
		if !more {
			object[name] = value
			return
		}
		inner, ok := object[name].(map[string]any)
		if !ok {
			inner = make(map[string]any)
			object[name] = inner
		}
		object, key = inner, rest
	}
}

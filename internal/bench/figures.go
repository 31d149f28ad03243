package bench

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
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

// digits is how many decimals of a key's values are significant.
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
	return math.Round(value*scale)/scale + 0 // -0 is 0
}

// addPercentiles adds the percentiles, each under the key and its name.
func (f *figures) addPercentiles(key string, durations []time.Duration, ranks ...rank) {
	for _, r := range ranks {
		f.add(key+"."+r.name, milliseconds(lateness.Percentile(durations, r.of)))
	}
}

// rank is a percentile and its name at the end of a key.
type rank struct {
	name string
	of   float64
}

var (
	p50  = rank{"p50_ms", 50}
	p99  = rank{"p99_ms", 99}
	p999 = rank{"p999_ms", 99.9}
	most = rank{"max_ms", 100}
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// judge compares the starts with the tasks in the table, and adds the figures.
func (r *run) judge(
	ctx context.Context, d *database, tag, name string, seen *lateness.Starts,
) (lateness.Judgement, error) {
	tasks, err := r.tasks(ctx, d, tag)
	if err != nil {
		return lateness.Judgement{}, err
	}
	j := lateness.Judge(tasks, seen, 0)
	r.figures.addJudgement(name, j, j.Starts)
	return j, nil
}

// tasks reads all tasks of a tag from the table.
func (r *run) tasks(ctx context.Context, d *database, tag string) (tasks []delaytask.TaskRow, err error) {
	err = r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		tasks, err = lateness.Tasks(ctx, s, tag)
		return err
	})
	return tasks, err
}

// addJudgement takes those starts whose lateness is of interest.
func (f *figures) addJudgement(name string, j lateness.Judgement, starts []time.Duration) {
	f.addPercentiles(name, starts, p50, p99, most)
	f.add(name+".early", float64(j.Early))
	f.add(name+".lost", float64(j.Lost))
	f.add(name+".duplicates", float64(j.Extra))
}

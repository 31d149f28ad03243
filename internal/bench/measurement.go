package bench

import (
	"context"
	"time"
)

// Measurement is one thing to measure.
type Measurement struct {
	Name    string // as Only names it; "raw.claim_batch" is also meant by "raw"
	Quick   bool   // part of a quick run
	Apart   bool   // measured only when it is named
	Turns   int    // 1 to 7; default: 3. What has one turn comes after the turns of the others
	Figures []Figure

	// Measure takes one turn. It adds a value to each of the figures that can be measured here.
	Measure func(context.Context, *Runner) error
	// Derive adds what follows from the medians of all measurements. May be nil.
	Derive func(*Runner)
}

// Figure is a key of the report, and its meaning.
type Figure [2]string

// Runner is a run of measurements.
type Runner struct {
	Options
	Meta    Meta
	figures map[string][]float64 // what the turns measured, by key
}

// Lasting is a duration at the scale of the run.
func (r *Runner) Lasting(d time.Duration) time.Duration { return time.Duration(float64(d) * r.Scale) }

// Count is a number at the scale of the run, at least 1.
func (r *Runner) Count(n int) int { return max(1, int(float64(n)*r.Scale)) }

// Ahead is the least time between the save of a task and its due time, so that any process has armed it. It is a second
// at any scale: what is saved too late is not measured.
func (r *Runner) Ahead() time.Duration { return max(r.Lasting(2500*time.Millisecond), time.Second) }

// LeftOut is the error of a measurement that cannot be taken here, and says why. The others are.
type LeftOut string

func (l LeftOut) Error() string { return string(l) }

// Fresh makes a measurement of f, which gets an empty database of its own.
func Fresh(f func(context.Context, *Runner, *Database) error) func(context.Context, *Runner) error {
	return func(ctx context.Context, r *Runner) error {
		return r.OnFresh(ctx, func(ctx context.Context, d *Database) error { return f(ctx, r, d) })
	}
}

const (
	Tasks    = 50_000           // tasks that are claimed, settled or run at once
	LateSpan = 20 * time.Second // in which the tasks of a rate are due
)

// Package bench measures the raw database and delaytask in turns, on the same server and the same tables. README.md
// says what each figure means. The module in the folder bench of the repository measures more with this package.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrInvalidOptions is returned by [Run] for a name that no measurement has.
var ErrInvalidOptions = errors.New("invalid options of the benchmark")

// Options say what to measure, and on which database.
type Options struct {
	// DSN names a server whose user may create databases, or a SQLite file in whose folder there is room. The named
	// database itself is neither read nor changed.
	DSN     string
	Quick   bool     // fewer measurements, and shorter ones
	Repeats int      // turns of each measurement, of which figures are medians; default: what the measurement says
	Only    []string // names of measurements, or groups of them such as "raw"; default: all that are not apart
	Scale   float64  // multiplies durations and numbers of tasks: for tests; default: 1

	// Progress is called before each turn and at the end, with the number of turns that are done.
	Progress func(done, total int, next string)
}

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

// Measurements of the raw database and of delaytask alternate.
var Measurements = []Measurement{
	rawInserts("raw.insert_alone", "rows by single-row autocommit INSERTs on 1 connection", 1, 1),
	rawInserts("raw.insert_single", "the same on 64 connections (SQLite: 1)", 64, 1), Save,
	rawInserts("raw.insert_batch", "rows by 500-row INSERTs on 4 connections (SQLite: 1)", batchConns, batchRows),
	saveBulk, rawClaims, rawSettles, Drain,
	latenessAt(100), latenessAt(500), latenessAt(2000), latenessAt(5000),
}

// Names lists the names of measurements.
func Names(all []Measurement) (names []string) {
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}

// choose returns the measurements that the options ask for.
func (o Options) choose(all []Measurement) ([]Measurement, error) {
	means := func(name string, m Measurement) bool { return strings.HasPrefix(m.Name+".", name+".") }
	for _, name := range o.Only {
		if !slices.ContainsFunc(all, func(m Measurement) bool { return means(name, m) }) {
			return nil, fmt.Errorf("%w: there is no measurement %q; there are %s", ErrInvalidOptions, name,
				strings.Join(Names(all), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(m Measurement) bool {
		if len(o.Only) > 0 {
			return !slices.ContainsFunc(o.Only, func(name string) bool { return means(name, m) })
		}
		return m.Apart || o.Quick && !m.Quick
	}), nil
}

// Runner is a run of measurements.
type Runner struct {
	Options
	Meta    Meta
	figures map[string][]float64 // what the turns measured, by key
}

// Run takes the measurements that the options ask for, and drops the databases that it makes, also when ctx ends. With
// an error it returns what was measured until then, if it had begun to measure. The error is [ErrInvalidOptions],
// [ErrLeftBehind], ctx's cause, or one of the database.
func Run(ctx context.Context, all []Measurement, o Options) (*Report, error) {
	chosen, err := o.choose(all)
	if err != nil {
		return nil, err
	}
	if o.Scale = cmp.Or(o.Scale, 1); o.Quick {
		o.Scale *= 0.4
	}
	r := &Runner{Options: o, figures: map[string][]float64{}}
	if err := r.OnFresh(ctx, r.describe); err != nil {
		return nil, err
	}
	err = r.turns(ctx, chosen)
	r.Meta.Duration = time.Since(r.Meta.Started).Milliseconds()
	for _, m := range chosen {
		if m.Derive != nil {
			m.Derive(r)
		}
	}
	return r.report(chosen), err
}

// turns alternate between the measurements, so that other load of the machine affects all alike.
func (r *Runner) turns(ctx context.Context, chosen []Measurement) error {
	var often, once []Measurement
	for turn := range max(r.Repeats, 7) {
		for _, m := range chosen {
			switch {
			case turn >= cmp.Or(r.Repeats, m.Turns, 3):
			case m.Turns == 1:
				once = append(once, m)
			default:
				often = append(often, m)
			}
		}
	}
	turns := append(often, once...)
	for i, m := range turns {
		r.Progress(i, len(turns), m.Name)
		err := m.Measure(ctx, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if out, ok := errors.AsType[LeftOut](err); ok {
			r.Meta.LeftOut[m.Name] = out.Error()
		} else if err != nil {
			return fmt.Errorf("measure %s: %w", m.Name, err)
		}
	}
	r.Progress(len(turns), len(turns), "done")
	return nil
}

// LeftOut is the error of a measurement that cannot be taken here, and says why. The others are.
type LeftOut string

func (l LeftOut) Error() string { return string(l) }

// Lasting is a duration at the scale of the run.
func (r *Runner) Lasting(d time.Duration) time.Duration { return time.Duration(float64(d) * r.Scale) }

// Count is a number at the scale of the run, at least 1.
func (r *Runner) Count(n int) int { return max(1, int(float64(n)*r.Scale)) }

const (
	Tasks    = 50_000           // tasks that are claimed, settled or run at once
	LateSpan = 20 * time.Second // in which the tasks of a rate are due
)

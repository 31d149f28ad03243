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

// Run takes the measurements that the options ask for, and drops the databases that it makes, also when ctx ends. With
// an error it returns what was measured until then, if it had begun to measure. The error is [ErrInvalidOptions],
// [ErrLeftBehind], ctx's cause, or one of the database.
func Run(ctx context.Context, all []Measurement, o Options) (*Report, error) {
	if o.Budget {
		all = withBudget(all)
	}
	chosen, err := o.choose(all)
	if err != nil {
		return nil, err
	}
	if o.Scale = cmp.Or(o.Scale, 1); o.Quick {
		o.Scale *= 0.4
	}
	r := &Runner{Options: o, figures: map[string][]float64{}}
	describe := func(ctx context.Context, d *Database) error { return r.Meta.describe(ctx, d, o) }
	if err := o.OnFresh(ctx, describe); err != nil {
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

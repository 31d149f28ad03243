package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// run is one run of the benchmark.
type run struct {
	Options
	once     bool // measurements that take long have one turn
	workload workload
	place    *place
	filled   *database // with the table that people read; nil before a measurement wants it
	figures  *figures
	stolen   stolen
	meta     Meta
}

// Run measures what the options select, and leaves nothing behind, even when ctx ends. With an error it returns what
// was measured until then, if a measurement had begun. The error is [ErrInvalidOptions], ctx's cause, or one of the
// database, with advice where there is some.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	once := o.Repeats == 0
	o = o.withDefaults()
	r := &run{Options: o, once: once, workload: o.workload(), figures: newFigures(), stolen: make(stolen)}
	began := time.Now()
	if r.place, err = newPlace(o.DSN, o.scratch); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.leave()) }()
	if err := r.describe(ctx, began); err != nil {
		return nil, err
	}
	err = r.stolen.during(wholeRun, func() error { return r.turns(ctx, o.chosen()) })
	for _, m := range registry {
		if m.derive != nil {
			m.derive(r.figures)
		}
	}
	r.meta.Stolen = r.stolen.percent()
	r.meta.Duration = time.Since(began).Milliseconds()
	return r.report(), err
}

// leave drops what the run has made, but for what is to be kept.
func (r *run) leave() error {
	if r.filled == nil {
		return r.place.leave()
	}
	if r.Keep && r.Database == "" {
		return nil
	}
	return errors.Join(r.filled.drop(), r.place.leave())
}

// turn is one turn of one measurement.
type turn struct {
	measurement
	number, of int
}

// turns alternate between raw and ours, so that other load of the machine affects all alike.
func (r *run) turns(ctx context.Context, chosen []measurement) error {
	var turns []turn
	for _, long := range []bool{false, true} {
		of := r.Repeats
		if long && r.once {
			of = 1
		}
		for number := range of {
			for _, m := range chosen {
				if m.once == long {
					turns = append(turns, turn{m, number + 1, of})
				}
			}
		}
	}
	var p Progress
	for _, t := range turns {
		p.Total += t.takes(r.workload)
	}
	for _, t := range turns {
		takes := t.takes(r.workload)
		p.Name, p.Turn, p.Turns = t.name, t.number, t.of
		err := r.stolen.during(t.name, func() error {
			return p.during(ctx, r.Progress, takes, func(ctx context.Context) error { return t.measure(ctx, r) })
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if out, ok := errors.AsType[*leftOut](err); ok {
			r.meta.LeftOut[t.name] = out.Error()
		} else if err != nil {
			return fmt.Errorf("measure %s: %w", t.name, err)
		}
		p.Done += takes
	}
	r.Progress(Progress{Done: p.Total, Total: p.Total})
	return nil
}

// leftOut is the error of a measurement that cannot be taken here. The others are.
type leftOut struct{ error }

func (l *leftOut) Unwrap() error { return l.error }

// Progress is the progress of a run.
type Progress struct {
	Name        string // of what is measured now; empty at the end
	Turn, Turns int    // from 1
	Done, Total time.Duration
}

const progressEvery = 200 * time.Millisecond

// during calls f, and reports progress meanwhile by the time that it is expected to take.
func (p Progress) during(
	ctx context.Context, report func(Progress), takes time.Duration, f func(context.Context) error,
) error {
	result := make(chan error, 1)
	began := time.Now()
	go func() { result <- f(ctx) }()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	done := p.Done
	for {
		report(p)
		select {
		case err := <-result:
			return err
		case <-ticker.C:
			p.Done = done + min(time.Since(began), takes)
		}
	}
}

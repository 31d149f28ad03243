package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Hammered is what all goroutines did together.
type Hammered struct {
	Count int
	Took  time.Duration
	Calls []time.Duration // how long each call took, in no order
}

// PerSecond is how many were done in a second.
func (h Hammered) PerSecond() float64 { return float64(h.Count) / h.Took.Seconds() }

// Operation returns how many tasks its call was for, and 0 when nothing is left to do. Goroutines call it at once.
type Operation func(context.Context) (int, error)

// Hammer has goroutines call op in a loop, each at least once, until the span is over or nothing is left to do. The
// first error ends all.
func Hammer(ctx context.Context, workers int, span time.Duration, op Operation) (Hammered, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := make([]Hammered, workers)
	began := time.Now()
	var group sync.WaitGroup
	for i := range parts {
		group.Go(func() {
			part := &parts[i]
			for first := true; ctx.Err() == nil; first = false {
				start := time.Now()
				if start.Sub(began) >= span && !first { // a busy machine may begin after a short span
					return
				}
				n, err := op(ctx)
				if err != nil {
					cancel(err)
				}
				if n == 0 || err != nil {
					return
				}
				part.Count += n
				part.Calls = append(part.Calls, time.Since(start))
			}
		})
	}
	group.Wait()
	all := Hammered{Took: time.Since(began)}
	for _, part := range parts {
		all.Count += part.Count
		all.Calls = append(all.Calls, part.Calls...)
	}
	return all, context.Cause(ctx)
}

// load is how an operation is called by so many goroutines.
type load func(ctx context.Context, workers int, op Operation) (Hammered, error)

// untilDone calls an operation until nothing is left to do.
func untilDone(ctx context.Context, workers int, op Operation) (Hammered, error) {
	return Hammer(ctx, workers, 1<<63-1, op)
}

// Warmed calls an operation for the time that a run measures, after the time that it warms up.
func (r *Runner) Warmed(ctx context.Context, workers int, op Operation) (Hammered, error) {
	if _, err := Hammer(ctx, workers, r.Lasting(500*time.Millisecond), op); err != nil {
		return Hammered{}, err
	}
	return Hammer(ctx, workers, r.Lasting(2*time.Second), op)
}

// statement must change so many rows.
type statement struct {
	text string
	args []any
	rows int
}

// run runs statements on n connections, on SQLite on one. Statements with arguments have one text, which is prepared.
func (d *Database) run(ctx context.Context, n int, load load, statements []statement) (Hammered, error) {
	pool, err := d.Connect(ctx, n)
	if err != nil {
		return Hammered{}, err
	}
	defer pool.Close()
	exec := pool.ExecContext
	if len(statements[0].args) > 0 {
		prepared, err := pool.PrepareContext(ctx, statements[0].text) //nolint:sqlclosecheck // the pool closes it
		if err != nil {
			return Hammered{}, err
		}
		exec = func(ctx context.Context, _ string, args ...any) (sql.Result, error) {
			return prepared.ExecContext(ctx, args...)
		}
	}
	var next atomic.Int64
	return load(ctx, pool.Stats().MaxOpenConnections, func(ctx context.Context) (int, error) {
		i := int(next.Add(1)) - 1
		if i >= len(statements) {
			return 0, nil
		}
		s := statements[i]
		result, err := exec(ctx, s.text, s.args...)
		if err != nil {
			return 0, err
		}
		if changed, err := result.RowsAffected(); err != nil || int(changed) != s.rows {
			return 0, errors.Join(fmt.Errorf("a statement for %d rows changed %d", s.rows, changed), err)
		}
		return s.rows, nil
	})
}

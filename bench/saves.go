package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/scheduler"
)

var save256 = func() bench.Measurement {
	m := bench.Saves("save.callers_256", "tasks by 256 goroutines that call SaveDelayTask one at a time", 256,
		bench.SaveOne, "raw.insert_single_per_s")
	m.Quick = false
	return m
}()

const txCallers = 32

var saveTx = bench.Measurement{
	Name: "save_tx", Quick: true,
	Figures: []bench.Figure{{"save_tx.per_s",
		"tasks by 32 goroutines, each with SaveDelayTaskTx in a transaction of its own"}},
	Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		pool, err := d.Connect(ctx, txCallers)
		if err != nil {
			return err
		}
		defer pool.Close()
		return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
			done, err := r.Warmed(ctx, txCallers, func(ctx context.Context) (int, error) {
				_, err := saveInTx(ctx, pool, s, bench.Tag, bench.Body, bench.FarDelay)
				return 1, err
			})
			r.Add("save_tx.per_s", done.PerSecond())
			return err
		})
	}),
}

// saveInTx saves a task in a transaction of its own.
func saveInTx(
	ctx context.Context, pool *sqlx.DB, s *scheduler.Scheduler, tag string, body any, delay time.Duration,
) (id int64, err error) {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if id, err = s.SaveDelayTaskTx(ctx, tx, tag, body, delay); err != nil {
		return 0, err
	}
	return id, tx.Commit()
}

const repeaters = 8 // of the callers

var keyed = bench.Measurement{
	Name: "keyed",
	Figures: []bench.Figure{
		{"keyed.ratio", "saves of each of 56 callers beside 8 that repeat a key, in terms of 64 good callers"},
		{"keyed.fresh_ratio", "the same when all good callers save with a key of its own each time"},
	},
	Measure: func(ctx context.Context, r *bench.Runner) error {
		for key, good := range map[string]func(int64) []delaytask.Option{
			"keyed.ratio": func(int64) []delaytask.Option { return nil }, "keyed.fresh_ratio": withKey("fresh", 1<<62),
		} {
			clean, err := goodSaves(ctx, r, 0, good)
			if err != nil {
				return err
			}
			beside, err := goodSaves(ctx, r, repeaters, good)
			if err != nil {
				return err
			}
			r.Add(key, beside/clean)
		}
		return nil
	},
}

// withKey names the n-th of several keys.
func withKey(name string, several int64) func(n int64) []delaytask.Option {
	return func(n int64) []delaytask.Option {
		return []delaytask.Option{delaytask.WithKey(fmt.Sprint(name, n%several))}
	}
}

// goodSaves returns how many saves a second each good caller does, while bad ones get ErrDuplicate from every call.
func goodSaves(
	ctx context.Context, r *bench.Runner, bad int, good func(int64) []delaytask.Option,
) (perSecond float64, err error) {
	err = r.OnFresh(ctx, func(ctx context.Context, d *bench.Database) error {
		return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
			save := func(options func(int64) []delaytask.Option) bench.Operation {
				var calls atomic.Int64
				return func(ctx context.Context) (int, error) {
					_, err := s.SaveDelayTask(ctx, bench.Tag, bench.Body, bench.FarDelay, options(calls.Add(1))...)
					if errors.Is(err, delaytask.ErrDuplicate) {
						err = nil
					}
					return 1, err
				}
			}
			repeating, end := context.WithCancel(ctx)
			repeated := make(chan error, 1)
			go func() {
				_, err := bench.Hammer(repeating, bad, 1<<62, save(withKey("repeated", repeaters)))
				repeated <- err
			}()
			done, err := r.Warmed(ctx, bench.SaveCallers-bad, save(good))
			end()
			if other := <-repeated; !errors.Is(other, context.Canceled) {
				err = errors.Join(err, other)
			}
			perSecond = done.PerSecond() / float64(bench.SaveCallers-bad)
			return err
		})
	})
	return perSecond, err
}

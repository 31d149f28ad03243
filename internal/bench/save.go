package bench

import (
	"context"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/scheduler"
)

// SaveCallers is how many goroutines save one task at a time.
const SaveCallers = 64

// Save measures saves of one task at a time.
var Save = Saves("save", "tasks by 64 goroutines that call SaveDelayTask one at a time", SaveCallers, SaveOne,
	"raw.insert_single_per_s")

var saveBulk = Saves("save_bulk", "tasks by 4 goroutines that call SaveDelayTasks with 1,000 at a time", batchConns,
	func(s *scheduler.Scheduler) Operation {
		return func(ctx context.Context) (int, error) {
			_, err := s.SaveDelayTasks(ctx, bulk)
			return len(bulk), err
		}
	}, "raw.insert_batch_per_s")

var bulk = slices.Repeat([]delaytask.Item{{Tag: Tag, Body: Body, Delay: FarDelay}}, savedAtOnce)

// SaveOne saves one task at a time, which is not due soon.
func SaveOne(s *scheduler.Scheduler) Operation {
	return func(ctx context.Context) (int, error) {
		_, err := s.SaveDelayTask(ctx, Tag, Body, FarDelay)
		return 1, err
	}
}

// Saves measures saves by so many goroutines, by a scheduler that serves nothing, beside a figure of the raw database.
func Saves(name, about string, callers int, save func(*scheduler.Scheduler) Operation, raw string) Measurement {
	return Measurement{
		Name: name, Quick: true,
		Figures: []Figure{
			{name + ".per_s", about}, {name + ".p50_ms", "half of these calls took at most"},
			{name + ".p99_ms", "99 of 100 of these calls took at most"},
			{name + ".ratio", name + ".per_s in terms of " + raw},
		},
		Measure: Fresh(func(ctx context.Context, r *Runner, d *Database) error {
			return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
				done, err := r.Warmed(ctx, callers, save(s))
				r.Add(name+".per_s", done.PerSecond())
				r.AddPercentiles(name, done.Calls, "p50_ms", "p99_ms")
				return err
			})
		}),
		Derive: func(r *Runner) { r.AddRatio(name+".ratio", name+".per_s", raw) },
	}
}

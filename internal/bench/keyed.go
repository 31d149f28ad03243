package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
)

const (
	repeaters   = 8 // of saveCallers
	goodCallers = saveCallers - repeaters
)

var keyed = measurement{
	name: "keyed",
	figures: []figure{
		{"keyed.ratio", "saves of each of 56 callers beside 8 that repeat a key, in terms of those of 64 good ones"},
		{"keyed.fresh_ratio", "the same when all good callers save with a key of its own each time"},
	},
	takes: func(w workload) time.Duration { return 4 * (onFreshTakes + w.warm + w.span) },
	measure: func(ctx context.Context, r *run) error {
		return errors.Join(r.keyed(ctx, "keyed.ratio", keyless), r.keyed(ctx, "keyed.fresh_ratio", freshKey()))
	},
}

// options are those of a save.
type options func() []delaytask.Option

func keyless() []delaytask.Option { return nil }

func freshKey() options {
	var n atomic.Int64
	return func() []delaytask.Option {
		return []delaytask.Option{delaytask.WithKey("fresh-" + strconv.FormatInt(n.Add(1), 10))}
	}
}

// keyed measures good callers alone, and then beside others that get ErrDuplicate from every call.
func (r *run) keyed(ctx context.Context, key string, good options) error {
	clean, err := r.goodSaves(ctx, 0, good)
	if err != nil {
		return err
	}
	beside, err := r.goodSaves(ctx, repeaters, good)
	if err == nil && clean > 0 {
		r.figures.add(key, beside/goodCallers/(clean/saveCallers))
	}
	return err
}

// goodSaves returns how many saves a second good callers do, while the others repeat keys.
func (r *run) goodSaves(ctx context.Context, bad int, good options) (perSecond float64, err error) {
	err = r.onFresh(ctx, func(ctx context.Context, d *database) error {
		return r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
			var saved atomic.Int64
			save := func(ctx context.Context, caller int) (int, error) {
				if caller < bad {
					return 1, repeat(ctx, s, caller)
				}
				_, err := s.SaveDelayTask(ctx, benchTag, benchBody, farDelay, good()...)
				saved.Add(1)
				return 1, err
			}
			if _, err := hammer(ctx, saveCallers, r.workload.warm, save); err != nil {
				return err
			}
			saved.Store(0)
			done, err := hammer(ctx, saveCallers, r.workload.span, save)
			perSecond = float64(saved.Load()) / done.took.Seconds()
			return err
		})
	})
	return perSecond, err
}

// repeat saves with the caller's key once more. Only the first of these saves is not a duplicate.
func repeat(ctx context.Context, s *delaytask.Scheduler, caller int) error {
	_, err := s.SaveDelayTask(ctx, benchTag, benchBody, farDelay, delaytask.WithKey(fmt.Sprint("repeated-", caller)))
	if errors.Is(err, delaytask.ErrDuplicate) {
		return nil
	}
	return err
}

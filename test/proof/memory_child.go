package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/internal/usage"
	"github.com/delaytask/delaytask/processor"
)

type memoryReport struct {
	Took     time.Duration `json:"took"` // from the save to the last start, in the fastest turn
	Resident int64         `json:"resident"`
	Peak     int64         `json:"peak"`
}

const (
	nowTurns = 3 // other programs disturb one of them easily, all of them seldom
	nowLimit = 2 * time.Minute
)

// lookAround is how long a child stays when its work is done: whatever else reads the table has had its turn then.
const lookAround = 6 * time.Second

// memoryChild runs tasks that are due at once, and tells how long that took and what memory it needed.
func memoryChild(ctx context.Context, o order, t *child.Teller) (err error) {
	s, err := open(ctx, o.DSN, delaytask.Config{})
	if err != nil {
		return err
	}
	defer func() { err = stopped(ctx, s, err) }()
	ran := make(chan struct{}, o.Count)
	run := processor.Func(func(context.Context, *processor.Task) error {
		ran <- struct{}{}
		return nil
	})
	if err := errors.Join(s.Register(nowTag, run), s.Register(weekTag, run), s.Start(ctx)); err != nil {
		return err
	}
	report := memoryReport{Took: nowLimit}
	for range nowTurns {
		took, err := nowTurn(ctx, s, ran, o.Count)
		if err != nil {
			return err
		}
		report.Took = min(report.Took, took)
	}
	if err := lateness.Pass(ctx, lookAround); err != nil {
		return err
	}
	runtime.GC()
	if report.Resident, report.Peak, err = usage.Memory(); err != nil {
		return err
	}
	t.Tell(report)
	return nil
}

// nowTurn saves n tasks and returns when so many have run. Whether it was those is for the table to say.
func nowTurn(ctx context.Context, s *delaytask.Scheduler, ran <-chan struct{}, n int) (time.Duration, error) {
	begin, overdue := time.Now(), time.After(nowLimit)
	if _, err := s.SaveDelayTasks(ctx, slices.Repeat([]delaytask.Item{{Tag: nowTag}}, n)); err != nil {
		return 0, err
	}
	for range n {
		select {
		case <-ran:
		case <-overdue:
			return nowLimit, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return time.Since(begin), nil
}

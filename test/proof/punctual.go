package main

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

const (
	punctualTag   = "proof.punctual"
	punctualTasks = 10_000
	punctualSpan  = 20 * time.Second // over which they are due
	punctualHead  = 5 * time.Second  // for the saves, before the first is due
	punctualDrain = time.Minute      // after the last is due
	punctualAim   = 3 * time.Millisecond
	falsification = 5 * time.Millisecond
)

// punctual runs tasks that are due at random moments. All run once, and none starts early.
func punctual(ctx context.Context, t *trial) error {
	n, span := t.count(punctualTasks), punctualSpan
	if t.quick {
		span /= 10
	}
	seen := lateness.NewStarts(n)
	if err := runPunctual(ctx, t, seen, n, span); err != nil {
		return err
	}
	tasks, err := t.tasks(ctx, punctualTag)
	if err != nil {
		return err
	}
	j := lateness.Judge(tasks, seen, 0)
	t.promise("tasks that ran exactly once", of(j.Once, n), "all", j.Once == n)
	t.promise("tasks that started early", fmt.Sprint(j.Early), "0", j.Early == 0)
	t.aim("lateness p50 / p99 / max", late(j.Starts).String(), "p99 < 3 ms", late(j.Starts).percentile(99) < punctualAim)

	falsified := lateness.Judge(tasks, seen, falsification)
	t.promise("early ones when the due times are falsified by 5 ms", fmt.Sprint(falsified.Early), "over 0", falsified.Early > 0)
	return nil
}

func runPunctual(ctx context.Context, t *trial, seen *lateness.Starts, n int, span time.Duration) (err error) {
	s, err := open(ctx, t.db.DSN, delaytask.Config{})
	if err != nil {
		return err
	}
	defer func() { err = stopped(ctx, s, err) }()
	err = s.Register(punctualTag, processor.Func(func(_ context.Context, task *processor.Task) error {
		seen.Add(task.ID, time.Now())
		return nil
	}))
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	begin := time.Now().Add(punctualHead)
	items := make([]delaytask.Item, n)
	for i, moment := range lateness.Moments(n, span) {
		items[i] = delaytask.Item{Tag: punctualTag, Options: []delaytask.Option{delaytask.WithTime(begin.Add(moment))}}
	}
	t.say("%d tasks, due at random moments of %v", n, span)
	if _, err := s.SaveDelayTasks(ctx, items); err != nil {
		return err
	}
	if time.Now().After(begin) {
		return fmt.Errorf("saving %d tasks took longer than %v: this machine is too busy to judge", n, punctualHead)
	}
	return seen.Wait(ctx, time.Until(begin)+span+punctualDrain)
}

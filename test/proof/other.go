package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

const (
	otherTag    = "proof.other"
	otherTasks  = 50 // of each delay
	otherBurst  = 5  // saved at once
	otherDrain  = 20 * time.Second
	peekedBound = 600 * time.Millisecond // of what another process saves less than 2 s before it is due
	aheadBound  = 100 * time.Millisecond // of what it saves 2 s before or more: milliseconds, on a machine that is not busy
)

var otherDelays = []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second}

// otherQuiet is longer than the second after which a process without work looks around less often: each burst meets that.
const otherQuiet = 1200 * time.Millisecond

// foreseen tells the delays for which the serving process sees a task before it is due.
func foreseen(delay time.Duration) bool { return delay >= 2*time.Second }

// other runs tasks that another process saves, one which serves nothing.
func other(ctx context.Context, t *trial) error {
	each := t.count(otherTasks)
	seen := lateness.NewStarts(each * len(otherDelays))
	if err := runOther(ctx, t, seen, each); err != nil {
		return err
	}
	tasks, err := t.tasks(ctx, otherTag)
	if err != nil {
		return err
	}
	var early int
	for _, delay := range otherDelays {
		j := lateness.Judge(slices.DeleteFunc(slices.Clone(tasks), func(task delaytask.Task) bool { return task.Delay != delay }), seen, 0)
		early += j.Early
		what := fmt.Sprintf("saved by another process, due in %v: lateness p50 / p99 / max", delay)
		if foreseen(delay) {
			t.promise(what, late(j.Starts).String(), "p99 "+aheadBound.String(), j.Once == each && late(j.Starts).percentile(99) <= aheadBound)
		} else {
			t.promise(what, late(j.Starts).String(), "max "+peekedBound.String(), j.Once == each && late(j.Starts).percentile(100) <= peekedBound)
		}
	}
	t.promise("tasks that started early", fmt.Sprint(early), "0", early == 0)
	return nil
}

func runOther(ctx context.Context, t *trial, seen *lateness.Starts, each int) (err error) {
	s, err := open(ctx, t.db.DSN, delaytask.Config{})
	if err != nil {
		return err
	}
	defer func() { err = stopped(ctx, s, err) }()
	err = s.Register(otherTag, processor.Func(func(_ context.Context, task *processor.Task) error {
		seen.Add(task.ID, time.Now())
		return nil
	}))
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	t.say("another process saves %d tasks for each of the delays %v", each, otherDelays)
	p, err := startChild[struct{}](ctx, order{Role: "other", DSN: t.db.DSN, Count: each})
	if err != nil {
		return err
	}
	if _, err := p.Last(); err != nil {
		return err
	}
	return seen.Wait(ctx, otherDrain)
}

// otherChild saves in bursts that find the other process idle.
func otherChild(ctx context.Context, o order, t *child.Teller) (err error) {
	s, err := open(ctx, o.DSN, delaytask.Config{})
	if err != nil {
		return err
	}
	defer func() { err = stopped(ctx, s, err) }()
	for _, delay := range otherDelays {
		for range o.Count / otherBurst {
			items := slices.Repeat([]delaytask.Item{{Tag: otherTag, Delay: delay}}, otherBurst)
			if _, err := s.SaveDelayTasks(ctx, items); err != nil {
				return err
			}
			pause := rand.N(400 * time.Millisecond)
			if !foreseen(delay) {
				pause += delay + otherQuiet
			}
			if err := lateness.Pass(ctx, pause); err != nil {
				return err
			}
		}
	}
	t.Tell(struct{}{})
	return nil
}

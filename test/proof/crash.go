package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
)

const (
	crashTag   = "proof.crash"
	freshTag   = "proof.fresh"
	crashTasks = 2000
	freshTasks = 100

	crashTTR   = 6 * time.Second
	crashWork  = 5 * time.Second  // what a task takes
	crashSpan  = 10 * time.Second // over which they are due, so that half of them run at once
	crashHead  = 5 * time.Second  // for the saves and the start of the first child
	crashPause = 4 * time.Second  // in which nobody runs and all others become due
	freshDelay = 2 * time.Second

	rescueBound = crashTTR + 5*time.Second // after the kill
	caughtBound = 6 * time.Second          // after the restart
	freshBound  = time.Second              // of lateness

	crashDrain = time.Minute
)

// crashEvent is what a child tells of a task.
type crashEvent struct {
	ID    int64     `json:"id"`
	Ended bool      `json:"ended"` // else it started
	At    time.Time `json:"at"`
}

// crash kills a process in the middle of its tasks and starts another one a moment later.
func crash(ctx context.Context, t *trial) error {
	n := t.count(crashTasks)
	if err := t.with(ctx, func(s *delaytask.Scheduler) error { return saveCrash(ctx, s, n) }); err != nil {
		return err
	}
	first, killed, err := runAndKill(ctx, t, n)
	if err != nil {
		return err
	}
	atKill, err := t.tasks(ctx, crashTag)
	if err != nil {
		return err
	}
	if err := lateness.Pass(ctx, crashPause-time.Since(killed)); err != nil {
		return err
	}
	restarted := time.Now()
	second, err := runAgain(ctx, t, atKill)
	if err != nil {
		return err
	}
	c := crashStory{atKill: atKill, first: first, second: second, killed: killed, restarted: restarted}
	if c.atEnd, err = t.tasks(ctx, crashTag); err != nil {
		return err
	}
	if c.fresh, err = t.tasks(ctx, freshTag); err != nil {
		return err
	}
	c.judge(t)
	return nil
}

func saveCrash(ctx context.Context, s *delaytask.Scheduler, n int) error {
	begin := time.Now().Add(crashHead)
	items := make([]delaytask.Item, n)
	for i := range items {
		due := begin.Add(crashSpan * time.Duration(i) / time.Duration(n))
		items[i] = delaytask.Item{
			Tag: crashTag, Options: []delaytask.Option{delaytask.WithTime(due), delaytask.WithTTR(crashTTR)},
		}
	}
	_, err := s.SaveDelayTasks(ctx, items)
	return err
}

// runAndKill returns what the child told, and when it was killed.
func runAndKill(ctx context.Context, t *trial, n int) (*lateness.Starts, time.Time, error) {
	p, err := startChild[crashEvent](ctx, order{Role: "crash", DSN: t.db.DSN})
	if err != nil {
		return nil, time.Time{}, err
	}
	seen := lateness.NewStarts(n)
	var started, ended int
	middle := n * 13 / 20 // have started; a part of them has ended by then
	p.Listen(crashDrain, func(e crashEvent) bool {
		if e.Ended {
			ended++
		} else {
			started++
			seen.Add(e.ID, e.At)
		}
		return started < middle
	})
	if started < middle {
		err := fmt.Errorf("only %d of %d tasks started", started, n)
		return nil, time.Time{}, errors.Join(err, p.Stop(func(crashEvent) {}))
	}
	killed := time.Now()
	t.say("kill the process: %d of %d tasks have started, %d of them have ended", started, n, ended)
	err = p.Kill(func(e crashEvent) {
		if !e.Ended {
			seen.Add(e.ID, e.At)
		}
	})
	return seen, killed, err
}

// runAgain lets a second child run all that is left, and new tasks.
func runAgain(ctx context.Context, t *trial, atKill []delaytask.Task) (*lateness.Starts, error) {
	left := t.count(freshTasks)
	for _, task := range atKill {
		if !task.Status.Final() {
			left++
		}
	}
	t.say("start another process for the %d that are left and %d new ones", left-t.count(freshTasks), t.count(freshTasks))
	p, err := startChild[crashEvent](ctx, order{Role: "crash", DSN: t.db.DSN, Count: t.count(freshTasks)})
	if err != nil {
		return nil, err
	}
	seen, ended := lateness.NewStarts(left), map[int64]bool{}
	note := func(e crashEvent) bool {
		if e.Ended {
			ended[e.ID] = true
		} else {
			seen.Add(e.ID, e.At)
		}
		return len(ended) < left
	}
	p.Listen(crashDrain, note)
	return seen, p.Stop(func(e crashEvent) { note(e) })
}

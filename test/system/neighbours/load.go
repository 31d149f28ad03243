package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// The load: 40 saves a second over ten tags, whatever becomes of those before.
const (
	savePeriod = 25 * time.Millisecond
	bulk       = 5               // tasks of one save in eight
	longRun    = 3 * time.Second // of one task in eight, with the shortest lease: it is renewed
	actPeriod  = 40              // one change by a person each second
)

var long = []byte(`"long"`)

// popped are the tags whose tasks callers take. The others have processors.
var popped = map[int]bool{2: true, 7: true}

// load is one process and what it does.
type load struct {
	s        *scheduler.Scheduler
	operator *operate.Operator
	ledger   *ledger
	over     <-chan struct{} // closed when the load ends
	end      func(context.Context) error
	calls    sync.WaitGroup
}

// beginLoad opens and starts a process of its own: what it has learnt of locks ends with it.
func beginLoad(ctx context.Context, dsn string, pool *sql.DB, log *slog.Logger) (*load, error) {
	s, err := scheduler.Open(ctx, dsn, scheduler.Config{Logger: log, Concurrency: 400, StopGrace: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	l := &load{s: s, ledger: newLedger(), operator: operate.New(operate.Config{
		Core: core.Of(s), Log: log, Audit: audit.New(audit.Config{Store: core.Of(s).Store(), Log: log}),
	})}
	ctx, cancel := context.WithCancel(ctx)
	l.over = ctx.Done()
	l.end = func(context.Context) error {
		cancel()
		l.calls.Wait()
		return s.Stop(context.WithoutCancel(ctx))
	}
	for tag := range tags {
		if err == nil && !popped[tag] {
			err = s.Register(tagName(tag), processor.Func(l.process))
		}
	}
	const ticks = "n.ticks" // its tasks are load, and not measured
	if err == nil {
		err = s.Register(ticks, processor.Func(func(context.Context, *delaytask.Task) error { return nil }))
	}
	if err == nil {
		_, err = s.SaveSchedule(ctx, ticks, delaytask.Every(time.Second), ticks, nil)
	}
	var measured []string
	for tag := range tags {
		measured = append(measured, tagName(tag))
	}
	completions, subscribeErr := s.Subscribe(delaytask.SubscribeConfig{
		Tags: measured, Kinds: []delaytask.EventKind{delaytask.EventCompleted}, Buffer: 1_000_000,
	})
	if err == nil {
		err = subscribeErr
	}
	if err == nil {
		err = s.Start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("start the process: %w, %w", err, l.end(ctx))
	}
	go func() {
		for e := range completions.Events() {
			l.ledger.completed(e.ID)
		}
	}()
	for tag := range popped {
		l.calls.Go(func() { l.pop(ctx, tag) })
	}
	l.calls.Go(func() { l.save(ctx) })
	l.calls.Go(func() { l.pulse(ctx, pool) })
	return l, nil
}

// save makes calls of every kind, each at its time.
func (l *load) save(ctx context.Context) {
	tick := time.NewTicker(savePeriod)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tag := n % tags
		items := []delaytask.Item{{Tag: tagName(tag), Body: "{}",
			Delay: time.Duration(100+n*37%400) * time.Millisecond}}
		switch (n/tags + 3*tag) % 8 { // no kind comes in bursts
		case 1:
			items[0].Options = []delaytask.Option{delaytask.WithKey(fmt.Sprint("load-", time.Now().UnixNano()))}
		case 3:
			for range bulk - 1 {
				items = append(items, items[0])
			}
		case 5:
			if !popped[tag] {
				items[0].Body, items[0].Options = long, []delaytask.Option{delaytask.WithTTR(time.Second)}
			}
		}
		l.calls.Go(func() {
			call := l.ledger.saves(tag)
			results, err := l.s.SaveDelayTasks(ctx, items)
			call.returned(results, err)
		})
		if n%actPeriod == 0 {
			l.calls.Go(func() { l.act(ctx, tagName(n/actPeriod%tags)) })
		}
	}
}

// act is a change by a person, with its entry in the audit log.
func (l *load) act(ctx context.Context, tag string) {
	id, err := l.s.SaveDelayTask(ctx, tag, nil, time.Hour)
	if err == nil {
		_, _ = l.operator.Cancel(ctx, operate.By{Caller: access.Everyone(), Via: audit.Command}, delaytask.ID(id))
	}
}

func (l *load) process(ctx context.Context, task *delaytask.Task) error {
	l.ledger.started(task, l.s.Now())
	if bytes.Equal(task.Body, long) {
		select {
		case <-time.After(longRun):
		case <-l.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.ledger.ended(task.ID)
	return nil
}

func (l *load) pop(ctx context.Context, tag int) {
	for ctx.Err() == nil {
		tasks, _ := l.s.Pop(ctx, tagName(tag), delaytask.PopMax(10)) // an error of the database: ask again
		for _, p := range tasks {
			l.ledger.started(&p.Task, l.s.Now())
			l.calls.Go(func() {
				l.ledger.ended(p.ID)
				_ = p.Finish(ctx) // an error leaves the task to the next one that pops it
			})
		}
		if tasks == nil {
			_ = lateness.Pass(ctx, 10*time.Millisecond)
		}
	}
}

// pulse commits to a table of its own, as fast as the server and the machine let it, twenty times a second at most.
func (l *load) pulse(ctx context.Context, pool *sql.DB) {
	for {
		since := time.Now()
		if _, err := pool.ExecContext(ctx, "UPDATE neighbours_pulse SET n = n + 1"); err == nil {
			l.ledger.pulse(since)
		}
		if lateness.Pass(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}

// patience is how long a row may keep its tasks waiting after its lock. While some end, others on probation may wait.
const patience = time.Minute

// drain waits until all is complete that was saved before, and returns how many tasks are not. The load goes on.
func (l *load) drain(ctx context.Context) (lost int) {
	before := time.Now()
	lost, since := l.ledger.open(before), before
	for lost > 0 && time.Since(since) < patience && lateness.Pass(ctx, 50*time.Millisecond) == nil {
		if left := l.ledger.open(before); left < lost {
			lost, since = left, time.Now()
		}
	}
	return lost
}

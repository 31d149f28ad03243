package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// shop is a program beside the service. It saves tasks and runs them, but those that the service calls an address with.
type shop struct {
	*scheduler.Scheduler
	number int64 // of the last order, payment and so on
}

// keepShop makes up what has happened, and works until ctx ends. It logs nothing: the failures of its tasks are on the
// pages.
func keepShop(ctx context.Context, dsn, service string, opened func()) (err error) {
	log := slog.New(slog.DiscardHandler)
	s := &shop{number: 10_000}
	s.Scheduler, err = scheduler.Open(ctx, dsn, scheduler.Config{
		Logger: log, NodeName: "shop-1", MaxAttempts: shopAttempts, StopGrace: demoGrace,
		Backoff: processor.Exponential(shopBackoff, time.Minute, 0.2),
	})
	if err != nil {
		return err
	}
	defer func() {
		if failed := s.Stop(context.WithoutCancel(ctx)); !errors.Is(failed, delaytask.ErrGraceEnded) {
			err = errors.Join(err, failed)
		}
	}()
	if err := remember(ctx, s.Scheduler, dsn); err != nil {
		return fmt.Errorf("make up an hour of history: %w", err)
	}
	calls, err := client.New(service, client.WithLogger(log))
	if err != nil {
		return err
	}
	defer calls.Stop(context.WithoutCancel(ctx))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	warehouse, err := calls.Receiver("warehouse", "http://"+listener.Addr().String()+"/tasks")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: warehouse, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // until it is closed
	defer server.Close()
	for i := range works {
		if w := &works[i]; w.tag == calledTag {
			err = warehouse.Register(w.tag, w)
		} else {
			err = s.Register(w.tag, w, processor.Concurrency(16))
		}
		if err != nil {
			return err
		}
	}
	err = errors.Join(s.Register(pausedTag, &works[0]), s.Pause(ctx, pausedTag), s.plan(ctx), s.Start(ctx),
		warehouse.Start(ctx), s.foresee(ctx))
	if err != nil {
		return err
	}
	opened()
	s.sell(ctx)
	return warehouse.Stop(context.WithoutCancel(ctx))
}

// plan saves the schedules.
func (s *shop) plan(ctx context.Context) error {
	_, err := s.SaveSchedule(ctx, "stock", delaytask.Every(5*time.Second), "stock.count", `{"warehouse":"north"}`)
	_, also := s.SaveSchedule(ctx, "report.nightly", delaytask.Cron("30 2 * * *", "Europe/Berlin"), "report.build",
		`{"report":"night"}`, delaytask.WithStartWithin(6*time.Hour))
	return errors.Join(err, also)
}

// foresee saves what falls due in the next hour.
func (s *shop) foresee(ctx context.Context) error {
	var items []delaytask.Item
	for i := range works {
		items = append(items, works[i].item(s.next(), 0))
	}
	for minute := range 60 {
		for range around(20 * tide(s.Now().Add(time.Duration(minute)*time.Minute))) {
			w := &works[rand.N(longTerm)]
			items = append(items, w.item(s.next(), time.Duration(minute)*time.Minute+rand.N(time.Minute)))
		}
	}
	_, err := s.SaveDelayTasks(ctx, items)
	return err
}

func (s *shop) next() int64 {
	s.number++
	return s.number
}

const sellEvery = 250 * time.Millisecond

// sell saves tasks until ctx ends: some are due soon, some within the hour.
func (s *shop) sell(ctx context.Context) {
	for lifecycle.Sleep(ctx, sellEvery) {
		var items []delaytask.Item
		for i := range works {
			if w := &works[i]; !w.ticks {
				for range around(w.aMinute * tide(time.Now()) * sellEvery.Minutes()) {
					items = append(items, w.item(s.next(), rand.N(20*time.Second)))
				}
			}
		}
		if rand.IntN(12) == 0 {
			items = append(items, works[rand.N(longTerm)].item(s.next(), 20*time.Minute+rand.N(40*time.Minute)))
		}
		_, _ = s.SaveDelayTasks(ctx, items) // an error is logged, and another sale comes
	}
}

// demoGrace is how long the tasks of the demo may go on when it ends.
const demoGrace = time.Second

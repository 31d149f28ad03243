package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// work is what the shop does with the tasks of a tag.
type work struct {
	tag     string
	aMinute float64       // how many tasks
	takes   time.Duration // an attempt, at least
	upTo    time.Duration // how much longer it may take
	mishaps []mishap
	body    string // with # for a number, as errors are
	ticks   bool   // a schedule saves them
}

// mishap is how a part of the attempts end.
type mishap struct {
	share float64
	err   string
	final bool // it is not tried again
}

const (
	unservedTag = "video.encode"
	pausedTag   = "newsletter.send"
	calledTag   = "parcel.ship" // whose receiver is an address
)

// longTerm is how many works, the first ones, get tasks that are due within the hour.
const longTerm = 4

var works = []work{
	{tag: "order.close", aMinute: 30, takes: 3 * time.Millisecond, upTo: 30 * time.Millisecond,
		body: `{"order":#}`},
	{tag: "mail.send", aMinute: 18, takes: 80 * time.Millisecond, upTo: 400 * time.Millisecond,
		body: `{"to":"customer-#@example.com","template":"thanks"}`,
		mishaps: []mishap{{share: 0.08, err: "451 mailbox busy, try again later"},
			{share: 0.02, err: "550 5.1.1 no such user", final: true}}},
	{tag: "payment.capture", aMinute: 12, takes: 200 * time.Millisecond, upTo: 900 * time.Millisecond,
		body: `{"payment":#,"amount":"49.90","card_token":"tok_4242"}`,
		mishaps: []mishap{{share: 0.05, err: "card declined: no funds", final: true},
			{share: 0.03, err: "post https://pay.example/v2/captures/#: 504 Gateway Timeout", final: true}}},
	{tag: calledTag, aMinute: 6, takes: 50 * time.Millisecond, upTo: 300 * time.Millisecond,
		body: `{"parcel":#}`},
	{tag: "report.build", aMinute: 4, takes: 5 * time.Second, upTo: 9 * time.Second,
		body: `{"report":"sales","shop":#}`},
	{tag: "stock.count", aMinute: 12, takes: 20 * time.Millisecond, upTo: 100 * time.Millisecond, ticks: true,
		body: `{"warehouse":"north"}`},
}

// try returns how an attempt goes.
func (w *work) try(number int64) (took time.Duration, err error) {
	took = w.takes + rand.N(w.upTo)
	chance := rand.Float64()
	for _, m := range w.mishaps {
		if chance -= m.share; chance < 0 {
			err = errors.New(numbered(m.err, number))
			if m.final {
				err = processor.Permanent(err)
			}
			return took, err
		}
	}
	return took, nil
}

// Process implements [processor.Processor].
func (w *work) Process(ctx context.Context, task *delaytask.Task) error {
	took, err := w.try(task.ID % 10_000)
	if !lifecycle.Sleep(ctx, took) {
		return context.Cause(ctx)
	}
	return err
}

// item is a task of the tag that is due after the delay.
func (w *work) item(number int64, delay time.Duration) delaytask.Item {
	return delaytask.Item{Tag: w.tag, Body: numbered(w.body, number), Delay: delay}
}

// numbered puts the number into a text that has a place for it.
func numbered(text string, number int64) string {
	return strings.ReplaceAll(text, "#", strconv.FormatInt(number, 10))
}

// tide is how much more than usual is going on at a moment: 0.4 to 1.6.
func tide(at time.Time) float64 {
	minutes := float64(at.Unix()) / 60
	return 1 + 0.4*math.Sin(minutes/4) + 0.2*math.Sin(minutes/1.7)
}

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
	if err := s.remember(ctx, dsn); err != nil {
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

// around draws a whole number whose average this is.
func around(average float64) int { return int(average + rand.Float64()) }

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

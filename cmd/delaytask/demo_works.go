package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/processor"
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

const (
	shopAttempts = 5
	shopBackoff  = 2 * time.Second
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

// around draws a whole number whose average this is.
func around(average float64) int { return int(average + rand.Float64()) }

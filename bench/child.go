package main

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// childArgument makes this program a process of a measurement.
const childArgument = "child"

// order is the task of a child process. Each role uses a part of it.
type order struct {
	Role    string
	DSN     string
	Tag     string        // that is served
	Count   int           // of tasks
	Rate    int           // of tasks a second
	Span    time.Duration // of what is measured
	Rest    time.Duration // before that
	Saving  bool          // tasks are saved here
	Serving bool          // tasks are run here
	Way     string        // how tasks are saved and taken
	Began   time.Time     // when the process was started
	Profile string        // file for a CPU profile
}

// database is the database of a child.
func (o order) database() *bench.Database {
	target, _ := sqlstore.ParseDSN(o.DSN) // the parent has used it
	return &bench.Database{DSN: o.DSN, Kind: target.Kind()}
}

// startChild starts a process. Its events have one type.
func startChild[E any](ctx context.Context, o order) (*child.Process[E], error) {
	return child.Start[E](ctx, o, childArgument)
}

// ask starts a process, and returns the last of its events when it has ended.
func ask[E any](ctx context.Context, o order) (last E, err error) {
	p, err := startChild[E](ctx, o)
	if err != nil {
		return last, err
	}
	return p.Last()
}

// lateEvent is the result of a child, or why it could not measure.
type lateEvent struct {
	lateness.Judgement
	LeftOut string
}

// latenessOf has a child save tasks for later and run them.
func latenessOf(
	ctx context.Context, r *bench.Runner, d *bench.Database, rate int, span time.Duration,
) (lateness.Judgement, error) {
	e, err := ask[lateEvent](ctx, order{Role: "lateness", DSN: d.DSN, Rate: rate, Span: span, Rest: r.Ahead()})
	return e.Judgement, errors.Join(err, leftOut(e.LeftOut))
}

func latenessChild(ctx context.Context, o order, t *child.Narrator) (err error) {
	var e lateEvent
	e.Judgement, err = o.database().Lateness(ctx, o.Rate, o.Span, o.Rest)
	if e.LeftOut, err = whyLeftOut(err); err == nil {
		t.Tell(e)
	}
	return err
}

// whyLeftOut takes an error that a child tells its parent.
func whyLeftOut(err error) (string, error) {
	if out, ok := errors.AsType[bench.LeftOut](err); ok {
		return out.Error(), nil
	}
	return "", err
}

func leftOut(why string) error {
	if why == "" {
		return nil
	}
	return bench.LeftOut(why)
}

// onSameClock makes a measurement of f, which gets an empty database. It is left out where the server has
// another clock.
func onSameClock(
	f func(context.Context, *bench.Runner, *bench.Database) error,
) func(context.Context, *bench.Runner) error {
	return bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		if err := d.SameClock(ctx); err != nil {
			return err
		}
		return f(ctx, r, d)
	})
}

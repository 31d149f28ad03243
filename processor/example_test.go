package processor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

// A typed processor gets the body decoded.
func ExampleTyped() {
	type order struct {
		Number int    `json:"number"`
		Reason string `json:"reason"`
	}
	closeOrder := processor.Typed(func(ctx context.Context, task *delaytask.Task, o order) error {
		fmt.Printf("closing order %d: %s\n", o.Number, o.Reason)
		return nil
	})

	task := &delaytask.Task{Body: []byte(`{"number": 7, "reason": "not paid"}`)}
	err := closeOrder.Process(context.Background(), task)
	fmt.Println(err)
	// Output:
	// closing order 7: not paid
	// <nil>
}

// An error that will not go away fails the task at once instead of being tried again.
func ExamplePermanent() {
	errNoSuchUser := errors.New("no such user")
	remind := processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		return processor.Permanent(fmt.Errorf("remind user %s: %w", task.Body, errNoSuchUser))
	})

	err := remind.Process(context.Background(), &delaytask.Task{Body: []byte("42")})
	_, permanent := errors.AsType[*processor.PermanentError](err)
	fmt.Println(permanent, err)
	// Output: true remind user 42: no such user
}

// Middleware wraps processors the way it wraps HTTP handlers; the first of a chain is outermost.
func ExampleChain() {
	count := func(next processor.Processor) processor.Processor {
		return processor.Func(func(ctx context.Context, task *delaytask.Task) error {
			err := next.Process(ctx, task)
			fmt.Printf("attempt %d of %s: %v\n", task.Attempt, task.Tag, err)
			return err
		})
	}
	broken := processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		panic("index out of range")
	})

	p := processor.Chain(count, processor.Recovery())(broken)
	err := p.Process(context.Background(), &delaytask.Task{Tag: "report", Attempt: 1})
	fmt.Println(err)
	// Output:
	// attempt 1 of report: panic: index out of range
	// panic: index out of range
}

// Options of a registration are given once for each tag.
func ExampleRegistry() {
	var registry processor.Registry
	send := processor.Func(func(ctx context.Context, task *delaytask.Task) error { return nil })

	err := registry.Register("mail.send", send,
		processor.Concurrency(8),
		processor.MaxAttempts(5),
		processor.Use(processor.Recovery()),
	)
	fmt.Println(err, registry.Tags())
	err = registry.Register("mail.send", send)
	fmt.Println(errors.Is(err, delaytask.ErrTagRegistered))
	// Output:
	// <nil> [mail.send]
	// true
}

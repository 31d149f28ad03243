package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// The tag "http" makes the requests that its tasks describe. Here it may also call one host of our own network, and a
// task whose pass rule is not satisfied comes back after a minute instead of with backoff.
func ExampleClient_HTTP() {
	guard, err := webhook.NewGuard(webhook.GuardConfig{Allow: []string{"orders.internal"}})
	if err != nil {
		panic(err)
	}
	client, err := webhook.New(webhook.Config{Guard: guard})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	patient := func(next processor.Processor) processor.Processor {
		return processor.Func(func(ctx context.Context, task *delaytask.Task) error {
			err := next.Process(ctx, task)
			if errors.Is(err, webhook.ErrMismatch) {
				return processor.RetryAfter(err, time.Minute)
			}
			return err
		})
	}
	var registry processor.Registry // a scheduler's Register takes the same arguments
	fmt.Println(registry.Register("http", client.HTTP(), processor.Use(patient)))
	// Output: <nil>
}

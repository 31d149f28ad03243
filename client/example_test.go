package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/processor"
)

// A program that runs its tasks by the service, here at its default address.
func Example() {
	ctx := context.Background()
	tasks, err := client.New("http://127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Stop(ctx)

	type order struct {
		Number int `json:"number"`
	}
	closeOrder := processor.Typed(func(ctx context.Context, task *delaytask.Task, o order) error {
		fmt.Println("closing order", o.Number)
		return nil
	})
	if err := tasks.Register("order.close", closeOrder); err != nil {
		log.Fatal(err)
	}
	if err := tasks.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := tasks.SaveDelayTask(ctx, "order.close", order{Number: 7}, 30*time.Minute); err != nil {
		log.Fatal(err)
	}
}

// The least program that runs a task with delaytask, for the comparison of what a program links.
package main

import (
	"context"
	"os"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

var CloseOrder = processor.NewKind[int]("order.close")

func main() {
	ctx := context.Background()
	tasks, err := scheduler.Open(ctx, os.Getenv("DSN"), scheduler.Config{})
	if err != nil {
		panic(err)
	}
	_ = CloseOrder.Process(tasks, func(context.Context, *delaytask.Task, int) error { return nil })
	_ = tasks.Start(ctx)
	_, _ = CloseOrder.Save(ctx, tasks, 1, 0)
	_ = tasks.Stop(ctx)
}

// Overhttp takes its tasks from the service, which may run anywhere:
//
//	go run ./cmd/delaytask serve
//	go run ./examples/overhttp
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/processor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	base := cmp.Or(os.Getenv("DELAYTASK_URL"), "http://127.0.0.1:8080")
	tasks, err := client.New(base, client.WithAccessToken(os.Getenv("DELAYTASK_TOKEN")))
	if err != nil {
		return err
	}
	return greet(ctx, tasks)
}

type greeting struct {
	Name string `json:"name"`
}

// Greet ties the tag to the type of its body.
var Greet = processor.NewKind[greeting]("greet")

// greet works with the library and with a client of the service: ../inprocess differs in the constructor alone.
func greet(ctx context.Context, tasks processor.Scheduler) error {
	err := Greet.Process(tasks, func(_ context.Context, _ *delaytask.Task, g greeting) error {
		_, err := fmt.Fprintln(os.Stdout, "hello", g.Name)
		return err
	})
	if err != nil {
		return err
	}
	if err := tasks.Start(ctx); err != nil {
		return err
	}
	if _, err := Greet.Save(ctx, tasks, greeting{Name: "Go"}, time.Second); err != nil {
		return err
	}
	<-ctx.Done() // Ctrl-C; what runs is finished first
	return tasks.Stop(context.WithoutCancel(ctx))
}

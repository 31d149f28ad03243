// Receiver is called by the service with its tasks, and asks for none:
//
//	DELAYTASK_SECRET='at least 16 characters' go run ./cmd/delaytask serve
//	go run ./examples/receiver
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

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
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:0"))
	if err != nil {
		return err
	}
	receiver, err := tasks.Receiver("example", "http://"+listener.Addr().String())
	if err != nil {
		return err
	}
	type greeting struct{ Name string }
	sayHello := processor.Typed(func(_ context.Context, _ *delaytask.Task, g greeting) error {
		_, err := fmt.Fprintln(os.Stdout, "hello", g.Name)
		return err
	})
	if err := receiver.Register("greet", sayHello); err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, receiver) }() // before Start: the service may call at once
	if err := receiver.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done() // Ctrl-C; the service calls no more, and what runs is finished first
	return receiver.Stop(context.WithoutCancel(ctx))
}

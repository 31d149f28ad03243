// Command lab holds what is run by hand to learn how good the tests are.
//
//	go run ./test/lab mutate                  break the code in each way that mutations/ lists; fail where no test notices
//	go run ./test/lab mutate -only claim,due  only those whose names hold one of the words
//	go run ./test/lab mutate -search          run all tests that could notice, and list which do
//
// The exit code is 1 when a mutation survived, and 2 when something could not be run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

var errSurvived = errors.New("a mutation survived")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	switch {
	case errors.Is(err, errSurvived):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "mutate" {
		return fmt.Errorf("want mutate, got %q", args)
	}
	return mutate(ctx, args[1:], os.Stdout)
}

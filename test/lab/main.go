// Command lab holds what is run by hand to learn how good the tests are.
//
//	go run ./test/lab mutate              break the code in each way that mutations/ lists; fail where no test notices
//	go run ./test/lab mutate -only claim  only those whose names hold the word, or one of several with commas between
//	go run ./test/lab mutate -search      try all tests, the quick packages first, and name those that notice
//	go run ./test/lab mutate -table       write results/mutations.md as well
//	go run ./test/lab overlay NAME FOLDER write into the folder what "go build -overlay" takes to build with a mutation
//	go run ./test/lab walk                count the files that a save, and a run, pass through
//	go run ./test/lab house               count files and their circles, names, arrows, walks, lines and words
//	go run ./test/lab judge FILE…         judge a run of the simulation or of chaos again, from its journals
//	go run ./test/lab seeds -seeds 1000   simulate the seeds from -seed on, and record them in test/lab/results
//	go run ./test/lab seeds report        make the tables of the documents from that record
//
// The exit code is 1 when a mutation survived or an invariant was violated, and 2 when something could not be run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/linear"
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
	case errors.Is(err, errSurvived), errors.Is(err, errViolated):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "mutate":
		return mutate(ctx, args[1:], os.Stdout)
	case len(args) == 3 && args[0] == "overlay":
		return overlay(args[1], args[2])
	case len(args) == 1 && args[0] == "walk":
		return walk(ctx, os.Stdout)
	case len(args) == 1 && args[0] == "house":
		return house(ctx, os.Stdout)
	case len(args) > 1 && args[0] == "judge":
		return judgeAgain(args[1:], os.Stdout)
	case len(args) > 0 && args[0] == "seeds":
		return seeds(ctx, args[1:], os.Stdout)
	}
	return fmt.Errorf("want mutate, overlay, walk, house, seeds or judge, with their arguments, got %q", args)
}

var errViolated = errors.New("an invariant was violated")

// judgeAgain shows the violations in journals, and then their totals.
func judgeAgain(files []string, out io.Writer) error {
	events, err := journal.ReadFiles(files...)
	if err != nil {
		return err
	}
	rules, err := judge.RulesOf(events)
	if err != nil {
		return err
	}
	v := judge.Judge(events, rules)
	counts, err := json.Marshal(struct {
		judge.Counts
		Linear linear.Counts `json:"linear"`
	}{v.Counts, v.Linear})
	if err := errors.Join(err, v.Show(out, math.MaxInt)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%d events, %d violations: %s\n", len(events), v.Total(), counts); err != nil {
		return err
	}
	if v.Total() > 0 {
		return fmt.Errorf("%w %d times", errViolated, v.Total())
	}
	return nil
}

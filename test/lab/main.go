// Command lab holds what is run by hand to learn how good the tests are.
//
//	go run ./test/lab mutate              break the code in each way that mutations/ lists; fail where no test notices
//	go run ./test/lab mutate -only claim  only those whose names hold the word, or one of several with commas between
//	go run ./test/lab mutate -search      try all tests, the quick packages first, and name those that notice
//	go run ./test/lab mutate -table       write results/mutations.md as well
//	go run ./test/lab walk                count the files that a save, and a run, pass through
//	go run ./test/lab judge FILE…         judge a run of the simulation or of chaos again, from the journals that it left
//	go run ./test/lab seeds -seed 1 -seeds 100000
//	                                      simulate these seeds, record them in docs/simulation.jsonl, and make the tables
//	go run ./test/lab seeds report        make the tables of the documents alone
//
// The exit code is 1 when a mutation survived or a promise was broken, and 2 when something could not be run.
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
	case errors.Is(err, errSurvived), errors.Is(err, errBroken):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "mutate":
		return mutate(ctx, args[1:], os.Stdout)
	case len(args) == 1 && args[0] == "walk":
		return walk(ctx, os.Stdout)
	case len(args) > 1 && args[0] == "judge":
		return judgeAgain(args[1:], os.Stdout)
	case len(args) > 0 && args[0] == "seeds":
		return seeds(ctx, args[1:], os.Stdout)
	}
	return fmt.Errorf("want mutate, walk, seeds, or judge and the files of journals, got %q", args)
}

var errBroken = errors.New("a promise was broken")

// judgeAgain shows what is wrong with journals, and then what they tell in all.
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
	if _, err := fmt.Fprintf(out, "%d events, %d violations: %s\n", len(events), v.Broken(), counts); err != nil {
		return err
	}
	if v.Broken() > 0 {
		return fmt.Errorf("%w %d times", errBroken, v.Broken())
	}
	return nil
}

// Command seeds plays simulated clusters (internal/testkit/sim) in parts and records each part, so that a campaign of
// many seeds may take many sittings: seeds that the record holds of the same code are not played again.
//
//	go run ./test/seeds -seed 1 -seeds 100000   play, add lines to docs/simulation.jsonl and make the tables of the documents
//	go run ./test/seeds report                  make the tables alone
//
// The exit code is 1 when a promise was broken, and 2 when nothing could be played or recorded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/delaytask/delaytask/test/lab/record"
)

// campaign is found from the root of the repository, where the program is run.
var campaign = record.Record[Line]{
	File: "docs/simulation.jsonl", What: "seeds", Command: "go run ./test/seeds report",
	Documents: map[string]func([]Line) string{"docs/simulation.md": Tables, "docs/reliability.md": Reached},
}

var errBroken = errors.New("a promise was broken")

type options struct {
	first uint64
	seeds uint64
	part  uint64
	force bool // record a tree that has changes
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "seeds:", err)
	}
	switch {
	case errors.Is(err, errBroken):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var opts options
	flags := flag.NewFlagSet("seeds", flag.ContinueOnError)
	flags.Uint64Var(&opts.first, "seed", 1, "the first seed")
	flags.Uint64Var(&opts.seeds, "seeds", 1000, "play so many")
	flags.Uint64Var(&opts.part, "part", 1000, "record them in parts of so many")
	flags.BoolVar(&opts.force, "force", false, "record also a tree with changes, and say so in the line")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch rest := flags.Args(); {
	case len(rest) == 1 && rest[0] == "report":
		return campaign.Report(".")
	case len(rest) > 0 || opts.seeds == 0 || opts.part == 0:
		return fmt.Errorf("want report, or flags for a seed at least, got %q", rest)
	}
	return goOn(ctx, opts, out)
}

// goOn plays what the record does not hold yet. What was run is asked before it is built, so the line names what was
// played.
func goOn(ctx context.Context, opts options, out io.Writer) error {
	source, err := campaign.Source(ctx, ".", record.Seeds)
	if err != nil {
		return err
	}
	if source.Changed && !opts.force {
		return errors.New("the tree has changes that are not in the commit: commit them, or record them as such with -force")
	}
	lines, err := campaign.Lines(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "delaytask-seeds-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "sim.test")
	if err := build(ctx, program); err != nil {
		return err
	}
	for _, p := range missing(lines, source.Code, span{opts.first, opts.first + opts.seeds}, opts.part) {
		l := Line{Began: time.Now().UTC().Truncate(time.Second), Commit: source.Commit, Changed: source.Changed, Code: source.Code, First: p.from}
		if l.Totals, err = play(ctx, program, p); err != nil {
			return err
		}
		if err := campaign.Append(".", l); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "from seed %d: %s\n", p.from, l.String())
		if l.Violations > 0 {
			return fmt.Errorf("%w by the seeds %d", errBroken, l.Failed)
		}
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/sim"
	"github.com/delaytask/delaytask/test/lab/record"
)

// campaign is found from the root of the repository, where the program is run.
var campaign = record.Record[Line]{
	File: "test/lab/results/simulation.jsonl", What: "seeds", Command: "go run ./test/lab seeds report",
	Documents: map[string]func([]Line) string{"test/lab/results/simulation.md": Tables, "docs/measured.md": Reached},
}

type seedOptions struct {
	first uint64
	seeds uint64
	part  uint64
	force bool // record a tree that has changes
}

// seeds plays simulated clusters (internal/testkit/sim) in parts and records each part. Seeds that the record holds of
// the same code are not played again, so a campaign may be interrupted and continued.
func seeds(ctx context.Context, args []string, out io.Writer) error {
	var opts seedOptions
	flags := flag.NewFlagSet("seeds", flag.ContinueOnError)
	flags.Uint64Var(&opts.first, "seed", 1, "the first seed")
	flags.Uint64Var(&opts.seeds, "seeds", 1000, "how many to play")
	flags.Uint64Var(&opts.part, "part", 1000, "record them in parts of this size")
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

// goOn plays what the record does not hold. It asks for the source before it builds, so a line names what was played.
func goOn(ctx context.Context, opts seedOptions, out io.Writer) error {
	source, err := campaign.Source(ctx, ".", record.Seeds)
	if err != nil {
		return err
	}
	if source.Changed && !opts.force {
		return errors.New("the tree has changes: commit them, or use -force, which the record tells")
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
	if err := buildSim(ctx, program); err != nil {
		return err
	}
	for _, p := range missing(lines, source.Code, span{opts.first, opts.first + opts.seeds}, opts.part) {
		l := Line{
			Began: time.Now().UTC().Truncate(time.Second), Commit: source.Commit, Changed: source.Changed,
			Code: source.Code, First: p.from,
		}
		if l.Totals, err = play(ctx, program, p); err != nil {
			return err
		}
		if err := campaign.Append(".", l); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "from seed %d: %s\n", p.from, l.String())
		if l.Violations > 0 {
			return fmt.Errorf("%w by the seeds %d", errViolated, l.Failed)
		}
	}
	return nil
}

func buildSim(ctx context.Context, program string) error {
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./internal/testkit/sim")
	compile.Stderr = os.Stderr
	if err := compile.Run(); err != nil {
		return fmt.Errorf("build the simulation: %w", err)
	}
	return nil
}

// play plays the seeds of a span in a process of their own. A violation is in the totals, and is no error.
func play(ctx context.Context, program string, s span) (totals sim.Totals, err error) {
	run := exec.CommandContext(ctx, program, "-test.run", "^TestSeeds$", "-test.timeout", "0", "-sim.json",
		"-sim.seed", fmt.Sprint(s.from), "-sim.seeds", fmt.Sprint(s.to-s.from))
	said, err := run.CombinedOutput()
	for line := range bytes.Lines(said) {
		if bytes.HasPrefix(line, []byte("{")) {
			if err := json.Unmarshal(line, &totals); err != nil {
				return totals, fmt.Errorf("read the totals from seed %d on: %w", s.from, err)
			}
		}
	}
	wrong := func(format string, args ...any) (sim.Totals, error) {
		return totals, fmt.Errorf("play from seed %d on: "+format, append([]any{s.from}, args...)...)
	}
	switch {
	case ctx.Err() != nil:
		return wrong("%w", ctx.Err())
	case uint64(totals.Seeds) != s.to-s.from:
		return wrong("%d of %d seeds were played, %w: %s", totals.Seeds, s.to-s.from, err, said)
	case (err != nil) != (totals.Violations > 0):
		return wrong("%d violations, but %v: %s", totals.Violations, err, said)
	case err != nil:
		_, _ = os.Stderr.Write(said)
	}
	return totals, nil
}

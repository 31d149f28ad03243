package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/delaytask/delaytask/internal/testkit/sim"
)

func build(ctx context.Context, program string) error {
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./internal/testkit/sim")
	compile.Stderr = os.Stderr
	if err := compile.Run(); err != nil {
		return fmt.Errorf("build the simulation: %w", err)
	}
	return nil
}

// play plays the seeds of a span in a process of their own. A broken promise is in the totals, and is no error.
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
	switch {
	case ctx.Err() != nil:
		return totals, fmt.Errorf("play from seed %d on: %w", s.from, ctx.Err())
	case uint64(totals.Seeds) != s.to-s.from:
		return totals, fmt.Errorf("play from seed %d on: %d of %d seeds were played, %w: %s", s.from, totals.Seeds, s.to-s.from, err, said)
	case (err != nil) != (totals.Violations > 0):
		return totals, errors.Join(fmt.Errorf("play from seed %d on: %d violations, but: %s", s.from, totals.Violations, said), err)
	case err != nil:
		_, _ = os.Stderr.Write(said)
	}
	return totals, nil
}

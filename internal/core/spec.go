package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

const maxPreview = 1000

func Preview(s delaytask.Spec, after time.Time, n int) (ticks []delaytask.Tick, warnings []string, err error) {
	if n < 1 || n > maxPreview {
		return nil, nil, fmt.Errorf("%w: count: want 1 to %d, got %d", delaytask.ErrInvalidOption, maxPreview, n)
	}
	read, err := readSpec(s)
	if err != nil {
		return nil, nil, err
	}
	found, complete := read.Preview(after, n)
	ticks, warnings = previewOf(read, found, complete)
	return ticks, warnings, nil
}

func previewOf(read *spec.Spec, found []spec.Tick, complete bool) (ticks []delaytask.Tick, warnings []string) {
	warnings = read.Warnings()
	for _, t := range found {
		ticks = append(ticks, delaytask.Tick(t))
	}
	if !complete {
		warnings = append(warnings, spec.EarlyWarning)
	}
	return ticks, warnings
}

// Coming is [Preview] for the next n ticks to come of a schedule that was read: it leaves out those that were skipped
// ahead, and those after its last run.
func (c *Core) Coming(ctx context.Context, s *delaytask.Schedule, n int) ([]delaytask.Tick, []string, error) {
	read, err := readSpec(s.Spec)
	if err != nil {
		return nil, nil, err
	}
	of := row.Schedule{
		ID: s.ID, Name: s.Name, Jitter: s.Jitter, MaxRuns: s.MaxRuns, Runs: s.Runs,
		Next: row.At(s.NextTick), Last: row.At(s.LastTick),
	}
	skipped, err := c.engine.Schedules().Skipped(ctx, &of)
	if err != nil {
		return nil, nil, fmt.Errorf("read what was skipped of schedule %s: %w", s.Name, err)
	}
	found, complete := decide.ComingOf(&of, read, skipped).Next(row.At(c.Now()), n)
	ticks, warnings := previewOf(read, found, complete)
	return ticks, warnings, nil
}

// readSpec returns what a spec means, or a [delaytask.SpecError].
func readSpec(s delaytask.Spec) (*spec.Spec, error) {
	read, err := spec.Parse(s)
	if unknown, ok := errors.AsType[*spec.ZoneError](err); ok {
		return nil, &delaytask.SpecError{Reason: unknown.Error()}
	}
	return read, err
}

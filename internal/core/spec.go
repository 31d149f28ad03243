package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
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
	warnings = read.Warnings()
	found, complete := read.Preview(after, n)
	for _, t := range found {
		ticks = append(ticks, delaytask.Tick(t))
	}
	if !complete {
		warnings = append(warnings, spec.EarlyWarning)
	}
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

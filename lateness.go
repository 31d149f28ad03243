package delaytask

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// Lateness tells how late the first attempts of completed tasks started. All is zero when there are none.
type Lateness = processor.Lateness

const (
	statsSamples  = 1000
	windowSamples = 10_000
)

// Lateness tells how late the first attempts of the tag's tasks started, of those tasks that completed within the window before
// now by the database's clock: of the newest 10,000 of them at most. A task that was purged after its retention is not counted.
//
// It returns [ErrInvalidTag], and [ErrInvalidOption] for a window that is not positive.
func (s *Scheduler) Lateness(ctx context.Context, tag string, window time.Duration) (Lateness, error) {
	if err := s.enter(ctx); err != nil {
		return Lateness{}, err
	}
	switch {
	case !processor.ValidTag(tag):
		return Lateness{}, fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
	case window <= 0:
		return Lateness{}, fmt.Errorf("%w: the window is %v, want more than 0", ErrInvalidOption, window)
	}
	reading, err := s.store.Now(ctx)
	if err != nil {
		return Lateness{}, fmt.Errorf("read the database's clock: %w", err)
	}
	samples, err := s.store.Lateness(ctx, []string{tag}, reading.Time.Add(-window), windowSamples)
	if err != nil {
		return Lateness{}, fmt.Errorf("read the lateness of tag %s: %w", tag, err)
	}
	late := make([]time.Duration, len(samples))
	for i, sample := range samples {
		late[i] = sample.Late
	}
	return latenessOf(late), nil
}

// latenessOf takes the nearest rank: every figure is one that was really measured.
func latenessOf(late []time.Duration) Lateness {
	if len(late) == 0 {
		return Lateness{}
	}
	slices.Sort(late)
	rank := func(percent int) time.Duration { return late[(len(late)*percent+99)/100-1] }
	return Lateness{Samples: len(late), P50: rank(50), P95: rank(95), P99: rank(99), Max: late[len(late)-1]}
}

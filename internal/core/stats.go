package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

func (c *Core) Stats(ctx context.Context) ([]report.TagStats, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	counts, err := listing.Counts(ctx, c.store, listing.MostCounted, listing.Statuses...)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	now, err := c.clusterState(ctx)
	if err != nil {
		return nil, err
	}
	byTag := map[string]*report.TagStats{}
	of := func(tag string) *report.TagStats {
		if byTag[tag] == nil {
			byTag[tag] = &report.TagStats{Tag: tag, Counts: map[delaytask.Status]int64{}, Served: now.served[tag],
				Paused: now.paused[tag].Paused}
		}
		return byTag[tag]
	}
	for tag := range now.served {
		of(tag)
	}
	for tag := range now.paused {
		of(tag)
	}
	for _, c := range counts {
		stats := of(c.Tag)
		status := c.Status.Text()
		stats.Counts[status] += c.Count
		if c.Capped {
			stats.Capped = append(stats.Capped, status)
		}
		if c.Status == row.Pending {
			stats.OldestPending = c.Oldest.Std()
		}
	}
	tags := slices.Sorted(maps.Keys(byTag))
	if err := c.addLateness(ctx, byTag, tags); err != nil {
		return nil, err
	}
	all := make([]report.TagStats, len(tags))
	for i, tag := range tags {
		all[i] = *byTag[tag]
	}
	return all, nil
}

// addLateness adds the lateness of tags that have completed tasks, of very many of the first ones.
func (c *Core) addLateness(ctx context.Context, byTag map[string]*report.TagStats, tags []string) error {
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		return byTag[tag].Counts[delaytask.Completed] == 0
	})
	tags = tags[:min(len(tags), lateTags)]
	samples, err := c.store.Lateness(ctx, tags, 0, min(statsSamples, max(leastSamples, mostSamples/max(len(tags), 1))))
	if err != nil {
		return fmt.Errorf("read the lateness: %w", err)
	}
	late := map[string][]time.Duration{}
	for _, sample := range samples {
		late[sample.Tag] = append(late[sample.Tag], sample.Late)
	}
	for tag, all := range late {
		byTag[tag].Lateness = latenessOf(all)
	}
	return nil
}

const (
	statsSamples  = 1000
	leastSamples  = 100    // of each of many tags
	mostSamples   = 10_000 // of all tags; each is read by its id
	lateTags      = 500    // whose samples are read
	windowSamples = 10_000
)

func (c *Core) Lateness(ctx context.Context, tag string, window time.Duration) (report.Lateness, error) {
	if err := c.enter(ctx); err != nil {
		return report.Lateness{}, err
	}
	switch {
	case !delaytask.ValidTag(tag):
		return report.Lateness{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, tag)
	case window <= 0:
		return report.Lateness{}, fmt.Errorf("%w: the window is %v, want more than 0", delaytask.ErrInvalidOption,
			window)
	}
	reading, err := c.store.Now(ctx)
	if err != nil {
		return report.Lateness{}, fmt.Errorf("read the database's clock: %w", err)
	}
	samples, err := c.store.Lateness(ctx, []string{tag}, reading.Time.Add(-window), windowSamples)
	if err != nil {
		return report.Lateness{}, fmt.Errorf("read the lateness of tag %s: %w", tag, err)
	}
	late := make([]time.Duration, len(samples))
	for i, sample := range samples {
		late[i] = sample.Late
	}
	return latenessOf(late), nil
}

// latenessOf takes the nearest rank: every figure is one that was really measured.
func latenessOf(late []time.Duration) report.Lateness {
	if len(late) == 0 {
		return report.Lateness{}
	}
	slices.Sort(late)
	rank := func(percent int) time.Duration { return late[(len(late)*percent+99)/100-1] }
	return report.Lateness{Samples: len(late), P50: rank(50), P95: rank(95), P99: rank(99), Max: late[len(late)-1]}
}

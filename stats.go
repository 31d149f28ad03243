package delaytask

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// TagStats is what there is of one tag.
type TagStats = processor.TagStats

// Stats returns what there is of every tag that has tasks, is served or is paused, sorted by tag. It counts the whole table, so
// it is for people and slow dashboards; [Metrics] are for monitoring.
func (s *Scheduler) Stats(ctx context.Context) ([]TagStats, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	counts, err := s.store.Counts(ctx)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	now, err := s.situation(ctx)
	if err != nil {
		return nil, err
	}
	byTag := map[string]*TagStats{}
	of := func(tag string) *TagStats {
		if byTag[tag] == nil {
			byTag[tag] = &TagStats{Tag: tag, Counts: map[Status]int64{}, Served: now.served[tag], Paused: now.paused[tag]}
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
		stats.Counts[Status(c.Status.String())] += c.Count
		if c.Status == row.Pending {
			stats.OldestPending = c.Oldest.Std()
		}
	}
	tags := slices.Sorted(maps.Keys(byTag))
	if err := s.addLateness(ctx, byTag, tags); err != nil {
		return nil, err
	}
	all := make([]TagStats, len(tags))
	for i, tag := range tags {
		all[i] = *byTag[tag]
	}
	return all, nil
}

func (s *Scheduler) addLateness(ctx context.Context, byTag map[string]*TagStats, tags []string) error {
	samples, err := s.store.Lateness(ctx, tags, 0, statsSamples)
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

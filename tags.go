package delaytask

import (
	"context"
	"maps"
	"slices"

	"github.com/delaytask/delaytask/processor"
)

// TagState says whether the tasks of a tag run.
type TagState = processor.TagState

// Tags returns every tag that a live node serves or that is paused, sorted by tag. It reads no tasks and is cheap; a tag that has
// tasks and is neither is only seen by Stats.
func (s *Scheduler) Tags(ctx context.Context) ([]TagState, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	now, err := s.situation(ctx)
	if err != nil {
		return nil, err
	}
	known := maps.Clone(now.served)
	maps.Copy(known, now.paused)
	tags := make([]TagState, 0, len(known))
	for _, tag := range slices.Sorted(maps.Keys(known)) {
		tags = append(tags, TagState{Tag: tag, Served: now.served[tag], Paused: now.paused[tag]})
	}
	return tags, nil
}

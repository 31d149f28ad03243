package delaytask

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/listing"
	"github.com/delaytask/delaytask/processor"
)

// Failures is failed tasks, grouped by their errors.
type Failures = processor.Failures

// FailureGroup is failed tasks of a tag with one error.
type FailureGroup = processor.FailureGroup

// Failures groups the newest 1,000 failed tasks of the tag, or of all tags when it is "". To list or retry the tasks of
// a group, also older ones, use [Filter] with its id. It returns [ErrInvalidTag].
func (s *Scheduler) Failures(ctx context.Context, tag string) (Failures, error) {
	if err := s.enter(ctx); err != nil {
		return Failures{}, err
	}
	if tag != "" && !processor.ValidTag(tag) {
		return Failures{}, fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
	}
	found, err := listing.ReadGroups(ctx, s.store, tag)
	if err != nil {
		return Failures{}, fmt.Errorf("group failed tasks: %w", err)
	}
	failures := Failures{Groups: make([]FailureGroup, len(found.Groups)), Tasks: found.Looked, More: found.More}
	for i, g := range found.Groups {
		failures.Groups[i] = FailureGroup{
			ID: g.ID, Tag: g.Tag, Error: g.Error, Tasks: g.Tasks, First: g.First.Std(), Last: g.Last.Std(),
			ExampleID: g.Example.ID, Example: g.Example.Error,
		}
	}
	return failures, nil
}

package core

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/report"
)

func (c *Core) Failures(ctx context.Context, tag string) (report.Failures, error) {
	if err := c.enter(ctx); err != nil {
		return report.Failures{}, err
	}
	if tag != "" && !delaytask.ValidTag(tag) {
		return report.Failures{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, tag)
	}
	found, err := listing.ReadGroups(ctx, c.store, tag)
	if err != nil {
		return report.Failures{}, fmt.Errorf("group failed tasks: %w", err)
	}
	failures := report.Failures{Groups: make([]report.FailureGroup, len(found.Groups)), Tasks: found.Looked,
		More: found.More}
	for i, g := range found.Groups {
		failures.Groups[i] = report.FailureGroup{
			ID: g.ID, Tag: g.Tag, Error: g.Error, Tasks: g.Tasks, First: g.First.Std(), Last: g.Last.Std(),
			ExampleID: g.Example.ID, Example: g.Example.Error,
		}
	}
	return failures, nil
}

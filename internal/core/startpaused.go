package core

import (
	"context"
	"maps"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/row"
)

// pausedAtStart is the reason of the pauses that a start makes.
const pausedAtStart = "paused at the start of a process (StartPaused, start_paused)"

// pauseKnown pauses each tag that an unfinished task, a schedule or this process has, and that is not paused yet.
func (c *Core) pauseKnown(ctx context.Context) error {
	tags := map[string]bool{}
	for _, tag := range c.registry.Tags() {
		tags[tag] = true
	}
	for _, status := range []row.Status{row.Pending, row.Executing} {
		of, err := listing.Tags(ctx, c.store, status)
		if err != nil {
			return err
		}
		for _, tag := range of {
			tags[tag] = true
		}
	}
	for f, more := (delaytask.ScheduleFilter{NoBodies: true}), true; more; {
		page, err := c.ListSchedules(ctx, f)
		if err != nil {
			return err
		}
		for _, s := range page.Schedules {
			tags[s.Tag] = true
		}
		f.AfterName, more = page.Next, page.Next != ""
	}
	now, err := c.clusterState(ctx)
	if err != nil {
		return err
	}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		if now.paused[tag].Paused {
			continue
		}
		if err := c.Pause(ctx, tag, delaytask.Reason(pausedAtStart)); err != nil {
			return err
		}
	}
	return nil
}

package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/journal"
)

// servedFrom returns when, from the moment on, a process that serves the tag is first there: nobody else can take its tasks. It is the
// moment itself for a tag that no process of the journal says it serves.
func (c *court) servedFrom(tag string, moment time.Time) time.Time {
	var back time.Time
	for _, start := range c.starts {
		switch {
		case !slices.Contains(strings.Fields(start.Detail), tag):
		case !start.At.After(moment):
			if gone := c.gone(start.Node); gone == nil || gone.At.After(moment) {
				return moment
			}
		case back.IsZero() || start.At.Before(back):
			back = start.At
		}
	}
	return latest(moment, back)
}

// gone is how the process stopped serving, nil while it serves.
func (c *court) gone(node string) *journal.Event {
	if crash := c.crashed[node]; crash != nil {
		return crash
	}
	for _, s := range c.stops {
		if s.begin.Node == node {
			return s.begin
		}
	}
	return nil
}

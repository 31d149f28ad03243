package metrics

import (
	"sync"

	"github.com/delaytask/delaytask/internal/metrics"
)

// backlog is which labels the last SetBacklog has set.
type backlog struct {
	mu     sync.Mutex
	labels map[string]struct{}
}

// SetBacklog says what is due and waits, of all tags that this process serves. A tag that is left out has no value any
// more. The tags that share a label add up, and the oldest task of all counts.
func (c *collector) SetBacklog(all []metrics.Backlog) {
	byLabel := map[string]metrics.Backlog{}
	for _, b := range all {
		label := c.tags.label(b.Tag)
		sum := byLabel[label]
		byLabel[label] = metrics.Backlog{Due: sum.Due + b.Due, Oldest: max(sum.Oldest, b.Oldest)}
	}
	c.backlog.mu.Lock()
	defer c.backlog.mu.Unlock()
	for label := range c.backlog.labels {
		if _, still := byLabel[label]; !still {
			c.dueTasks.DeleteLabelValues(label)
			c.oldestDue.DeleteLabelValues(label)
		}
	}
	c.backlog.labels = map[string]struct{}{}
	for label, b := range byLabel {
		c.dueTasks.WithLabelValues(label).Set(float64(b.Due))
		c.oldestDue.WithLabelValues(label).Set(b.Oldest.Seconds())
		c.backlog.labels[label] = struct{}{}
	}
}

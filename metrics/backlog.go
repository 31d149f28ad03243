package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask/internal/metrics"
)

// backlog is which labels the last SetBacklog has set.
type backlog struct {
	mu     sync.Mutex
	labels map[string]struct{}
}

// SetBacklog says what is due and waits: of the tags that this process serves, and of those that none serves. A tag
// that is left out has no value any more. The tags that share a label add up, and the oldest task of all counts. Of
// their numbers of processes the smallest counts.
func (c *collector) SetBacklog(all []metrics.Backlog) {
	byLabel := map[string]metrics.Backlog{}
	for _, b := range all {
		label := c.tags.label(b.Tag)
		if b.Nodes > 0 {
			c.startTag(label)
		}
		if sum, shared := byLabel[label]; shared {
			b.Due, b.Oldest, b.Nodes = sum.Due+b.Due, max(sum.Oldest, b.Oldest), min(sum.Nodes, b.Nodes)
		}
		byLabel[label] = b
	}
	c.backlog.mu.Lock()
	defer c.backlog.mu.Unlock()
	for label := range c.backlog.labels {
		if _, still := byLabel[label]; !still {
			for _, gauge := range []*prometheus.GaugeVec{c.dueTasks, c.oldestDue, c.tagNodes} {
				gauge.DeleteLabelValues(label)
			}
		}
	}
	c.backlog.labels = map[string]struct{}{}
	for label, b := range byLabel {
		c.dueTasks.WithLabelValues(label).Set(float64(b.Due))
		c.oldestDue.WithLabelValues(label).Set(b.Oldest.Seconds())
		c.tagNodes.WithLabelValues(label).Set(float64(b.Nodes))
		c.backlog.labels[label] = struct{}{}
	}
}

// SetPurgeLags says by status for how long the oldest finished task is past its retention. Without lags they have no
// values any more.
func (c *collector) SetPurgeLags(byStatus map[string]time.Duration) {
	if len(byStatus) == 0 {
		c.purgeLag.Reset()
	}
	for status, lag := range byStatus {
		c.purgeLag.WithLabelValues(status).Set(lag.Seconds())
	}
}

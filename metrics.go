package delaytask

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask/internal/metrics"
)

// Metrics is a [prometheus.Collector] of everything a scheduler counts and measures: saves, claims, runs by result, retries,
// rescues, lateness per tag, batch sizes, database errors by class, timers in memory, and how well the database's clock is known.
// All names begin with delaytask_ and do not change.
type Metrics struct{ collector *metrics.Collector }

// NewMetrics returns the metrics of one scheduler. It registers itself nowhere: register it where the application's metrics are
// served, and put it into [Config].
func NewMetrics() *Metrics { return &Metrics{collector: metrics.New()} }

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { m.collector.Describe(ch) }

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) { m.collector.Collect(ch) }

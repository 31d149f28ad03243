// Package metrics counts and measures what a scheduler does, for Prometheus. Dashboards and alerts rely on the names of
// the series: they begin with delaytask_ and do not change.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Collector holds the series of one scheduler. It is a [prometheus.Collector] and registers itself nowhere.
//
// Its methods are named after what happened. They are safe for concurrent use and do nothing on a nil Collector, so
// that metrics can be switched off without a question at every call.
type Collector struct {
	tags tagLabels
	all  []prometheus.Collector

	saves          *prometheus.CounterVec
	claims         *prometheus.CounterVec
	runs           *prometheus.CounterVec
	retries        *prometheus.CounterVec
	rescues        *prometheus.CounterVec
	quarantined    prometheus.Counter
	ignoredContext prometheus.Counter
	purged         *prometheus.CounterVec
	databaseErrors *prometheus.CounterVec

	lateness  *prometheus.HistogramVec
	batchSize *prometheus.HistogramVec

	heapEntries prometheus.Gauge
	running     prometheus.Gauge
	concurrency prometheus.Gauge
	nodesAlive  prometheus.Gauge
	clockWidth  prometheus.Gauge
	clockSkew   prometheus.Gauge
}

// New returns a collector whose series stand at zero.
func New() *Collector {
	c := new(Collector)
	c.addCounters()
	c.addHistograms()
	c.addGauges()
	return c
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	if c == nil {
		return
	}
	for _, each := range c.all {
		each.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if c == nil {
		return
	}
	for _, each := range c.all {
		each.Collect(ch)
	}
}

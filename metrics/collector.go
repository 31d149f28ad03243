// Package metrics counts and measures what a scheduler does, for Prometheus. Dashboards and alerts rely on the names of
// the series: they begin with delaytask_ and do not change.
//
//	m := metrics.New()
//	prometheus.MustRegister(m)
//	tasks, err := scheduler.Open(ctx, dsn, scheduler.Config{Metrics: m})
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask/internal/metrics"
)

// Metrics is a [prometheus.Collector] of everything that one scheduler counts and measures: saves, claims, runs by
// result, retries, rescues, lateness and run duration per tag, what is due and waits and how many processes serve it,
// how far the purge is behind, batch sizes, database errors by class, timers in memory, and how well the database's
// clock is known.
type Metrics struct{ collector collector }

// New returns the metrics of one scheduler, which stand at zero. They register themselves nowhere: register them where
// the application's metrics are served, and put them into the scheduler's Config.
func New() *Metrics {
	m := new(Metrics)
	m.collector.addCounters()
	m.collector.addHistograms()
	m.collector.addGauges()
	return m
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, each := range m.collector.all {
		each.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, each := range m.collector.all {
		each.Collect(ch)
	}
}

// Recorder is for the scheduler, which records by it.
func (m *Metrics) Recorder() metrics.Recorder { return &m.collector }

// collector holds the series.
type collector struct {
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
	wakeups        *prometheus.CounterVec
	ticks          *prometheus.CounterVec

	lateness  *prometheus.HistogramVec
	duration  *prometheus.HistogramVec
	batchSize *prometheus.HistogramVec

	dueTasks    *prometheus.GaugeVec
	oldestDue   *prometheus.GaugeVec
	tagNodes    *prometheus.GaugeVec
	purgeLag    *prometheus.GaugeVec
	backlog     backlog
	schedules   schedules
	heapEntries prometheus.Gauge
	running     prometheus.Gauge
	concurrency prometheus.Gauge
	nodesAlive  prometheus.Gauge
	unreachable prometheus.Gauge
	unreadable  prometheus.Gauge
	clockHeld   prometheus.Gauge
	clockWidth  prometheus.Gauge
	clockSkew   prometheus.Gauge
}

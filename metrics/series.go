package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask/internal/metrics"
)

const namespace = "delaytask"

// latenessBuckets are dense around what the README promises: 2 ms on time, 600 ms for short delays of other processes,
// 6 s caught up.
var latenessBuckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05,
	0.1, 0.25, 0.6, 1, 2.5, 6, 15, 60, 300, 900, 3600,
}

var durationBuckets = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

var batchBuckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}

func (c *collector) addCounters() {
	c.saves = c.counterVec("saves_total", "Saves by the answer that their caller got.", "result")
	c.claims = c.counterVec("claims_total", "Rows that this process tried to claim; another process won the lost ones.",
		"result")
	c.runs = c.counterVec("runs_total", "Attempts that ended, by tag and by what became of the task.", "tag", "result")
	c.retries = c.counterVec("retries_total", "Attempts that ended in an error and will be followed by another one.",
		"tag")
	c.rescues = c.counterVec("rescues_total",
		"Leases of dead or stuck executors that a rescue looked at, by what it did.",
		"result")
	c.quarantined = c.counter("quarantined_total", "Tasks failed because they lost their process too often.")
	c.ignoredContext = c.counter("ignored_context_total",
		"Processors that went on working after their context had ended.")
	c.purged = c.counterVec("purged_total", "Finished rows deleted after their retention, by status.", "status")
	c.databaseErrors = c.counterVec("database_errors_total", "Errors of the database by class.", "class")
	c.wakeups = c.counterVec("wakeups_total", "Datagrams by which processes tell each other of tasks, by event.",
		"event")

	c.ticks = c.counterVec("schedule_ticks_total",
		"Ticks of schedules about which this process has written what became of them.", "schedule", "outcome")

	start(c.saves, metrics.SaveStored, metrics.SaveDuplicate, metrics.SaveConflict, metrics.SaveRefused,
		metrics.SaveUnknown, metrics.SaveFailed)
	start(c.claims, claimWon, claimLost, claimError)
	start(c.rescues, metrics.RescueReturned, metrics.RescueQuarantined)
	start(c.purged, "completed", "cancelled", "failed")
	start(c.wakeups, metrics.WakeSent, metrics.WakeReceived, metrics.WakeRefused, metrics.WakeLost)
	start(c.databaseErrors, "unknown", "not_applied", "locked", "duplicate", "caller", "operator")
}

func (c *collector) addHistograms() {
	c.lateness = c.histogramVec("lateness_seconds",
		"How much later than expected first attempts started: in total, and by what they waited for.",
		latenessBuckets, "tag", "part")
	c.duration = c.histogramVec("run_duration_seconds", "How long processors took, by tag.", durationBuckets, "tag")
	c.batchSize = c.histogramVec("batch_size", "Rows in one statement, by operation.", batchBuckets, "op")
}

func (c *collector) addGauges() {
	c.dueTasks = c.gaugeVec("due_tasks",
		"Tasks that are due and wait, of the tags that this process serves or none does; at most 1000.", "tag")
	c.oldestDue = c.gaugeVec("oldest_due_seconds",
		"How long ago the oldest task that waits was due; 0 when none waits.", "tag")
	c.tagNodes = c.gaugeVec("tag_nodes",
		"Live processes that serve the tag; 0 for a tag with due tasks that none serves.", "tag")
	c.purgeLag = c.gaugeVec("purge_lag_seconds",
		"For how long the oldest finished task is past its retention; 0 when none is.", "status")
	c.schedules.add(c)
	c.heapEntries = c.gauge("heap_entries", "Tasks armed in the timer heap.")
	c.running = c.gauge("running_tasks", "Tasks that this process has claimed and not yet finished.")
	c.concurrency = c.gauge("concurrency", "How many tasks may run at once in this process.")
	c.nodesAlive = c.gauge("nodes_alive", "Processes with a fresh heartbeat, those that only save included.")
	c.unreachable = c.gauge("unreachable_nodes", "Processes that do not acknowledge the wake-ups of this one.")
	c.unreadable = c.gauge("schedules_unreadable",
		"Schedules that this process leaves to others, because it cannot read them.")
	c.clockHeld = c.gauge("clock_held", "1 while no task starts, because the database's time is not known; else 0.")
	c.clockWidth = c.gauge("clock_width_seconds", "Distance between the two bounds held for the database's clock.")
	c.clockSkew = c.gauge("clock_skew_seconds", "Wall clock of this machine minus the database's clock.")
}

// startTag is start for the attempts of a tag that this process serves.
func (c *collector) startTag(label string) {
	c.retries.WithLabelValues(label)
	for _, result := range []string{metrics.RunCompleted, metrics.RunRetried, metrics.RunFailed, metrics.RunPanicked} {
		c.runs.WithLabelValues(label, result)
	}
}

// start makes series visible before their first event: a rate from nothing to one cannot be seen.
func start(vec *prometheus.CounterVec, values ...string) {
	for _, v := range values {
		vec.WithLabelValues(v)
	}
}

func (c *collector) counter(name, help string) prometheus.Counter {
	return add(c, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
}

func (c *collector) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return add(c, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help},
		labels))
}

func (c *collector) gauge(name, help string) prometheus.Gauge {
	return add(c, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
}

func (c *collector) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(c, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func (c *collector) histogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
	return add(c, prometheus.NewHistogramVec(opts, labels))
}

func add[T prometheus.Collector](c *collector, series T) T {
	c.all = append(c.all, series)
	return series
}

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask/internal/metrics"
)

// schedules are the gauges of schedules. Each node has the schedules of its share.
type schedules struct {
	names                                                         tagLabels
	next, success, behind, unsuccessful, failures, paused, itself *prometheus.GaugeVec
}

func (s *schedules) add(c *collector) {
	gauge := func(name, help string) *prometheus.GaugeVec { return c.gaugeVec("schedule_"+name, help, "schedule") }
	s.next = gauge("next_timestamp_seconds", "The first tick that is not decided.")
	s.success = gauge("last_success_timestamp_seconds",
		"Tick of the last run that completed; before the first, the creation of the schedule.")
	s.behind = gauge("behind_ticks", "Ticks that are due and not decided; at most 1000.")
	s.unsuccessful = gauge("unsuccessful_ticks",
		"Ticks that were due since the last success, without those since a run that is open; at most 1000.")
	s.failures = gauge("failures", "Failed runs in a row.")
	s.paused = gauge("paused", "1 while the schedule is paused; else 0.")
	s.itself = gauge("paused_itself", "1 while the schedule is paused because its runs failed; else 0.")
}

// SetUnreadableSchedules says how many schedules this process leaves to others, because it cannot read them.
func (c *collector) SetUnreadableSchedules(n int) { c.unreadable.Set(float64(n)) }

// Ticks counts what became of ticks.
func (c *collector) Ticks(schedule, outcome string, n int) {
	c.ticks.WithLabelValues(c.schedules.names.label(schedule), outcome).Add(float64(n))
}

// SetSchedules says how the schedules of this node's share stand. Those that are left out have no values any more.
func (c *collector) SetSchedules(all []metrics.Schedule) {
	s := &c.schedules
	for _, gauge := range []*prometheus.GaugeVec{
		s.next, s.success, s.behind, s.unsuccessful, s.failures, s.paused, s.itself,
	} {
		gauge.Reset()
	}
	for _, of := range all {
		set := func(gauge *prometheus.GaugeVec, value float64) { gauge.WithLabelValues(of.Name).Set(value) }
		if !of.Next.IsZero() {
			set(s.next, float64(of.Next.Unix()))
		}
		set(s.success, float64(of.LastSuccess.Unix()))
		set(s.behind, float64(of.Behind))
		set(s.unsuccessful, float64(of.Unsuccessful))
		set(s.failures, float64(of.Failures))
		set(s.paused, flag(of.Paused))
		set(s.itself, flag(of.PausedItself))
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

package metrics_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/delaytask/delaytask/internal/metrics"
)

func TestSeriesFollowTheConventions(t *testing.T) {
	t.Parallel()
	c := metrics.New()
	everyEvent(c)
	problems, err := testutil.GatherAndLint(registryOf(t, c))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	c := metrics.New()
	c.Claimed(3, 2)
	c.ClaimFailed(4)
	c.Run("mail", metrics.RunCompleted)
	c.Run("mail", metrics.RunCompleted)
	c.Clock(1500*time.Microsecond, -2*time.Second)
	want := `
# HELP delaytask_claims_total Rows that this process tried to claim; another process won the lost ones.
# TYPE delaytask_claims_total counter
delaytask_claims_total{result="error"} 4
delaytask_claims_total{result="lost"} 2
delaytask_claims_total{result="won"} 3
# HELP delaytask_clock_skew_seconds Wall clock of this machine minus the database's clock.
# TYPE delaytask_clock_skew_seconds gauge
delaytask_clock_skew_seconds -2
# HELP delaytask_clock_width_seconds Distance between the two bounds held for the database's clock.
# TYPE delaytask_clock_width_seconds gauge
delaytask_clock_width_seconds 0.0015
# HELP delaytask_runs_total Attempts that ended, by tag and by what became of the task.
# TYPE delaytask_runs_total counter
delaytask_runs_total{result="completed",tag="mail"} 2
`
	err := testutil.CollectAndCompare(c, strings.NewReader(want), "delaytask_claims_total",
		"delaytask_clock_skew_seconds",
		"delaytask_clock_width_seconds", "delaytask_runs_total")
	if err != nil {
		t.Error(err)
	}
}

func TestLatenessNeverFallsBelowZero(t *testing.T) {
	t.Parallel()
	c := metrics.New()
	c.Late("mail", metrics.Lateness{
		Total: 2 * time.Millisecond, Timer: -time.Second, Claim: time.Millisecond, Pool: time.Millisecond,
		Receiver: time.Millisecond,
	})
	families, err := registryOf(t, c).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil && h.GetSampleSum() < 0 {
				t.Errorf("%s has the sum %v", f.GetName(), h.GetSampleSum())
			}
		}
	}
}

func TestTagsBeyondTheBoundShareOneLabel(t *testing.T) {
	t.Parallel()
	c := metrics.New()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				c.Run(fmt.Sprintf("tag-%d-%d", g, i), metrics.RunCompleted)
			}
		})
	}
	wg.Wait()
	if got := testutil.CollectAndCount(c, "delaytask_runs_total"); got != 201 {
		t.Errorf("%d series, want 200 tags and one for all others", got)
	}
}

func TestNilCollectorDoesNothing(t *testing.T) {
	t.Parallel()
	var c *metrics.Collector
	everyEvent(c)
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d series, want none", n)
	}
}

func everyEvent(c *metrics.Collector) {
	c.Saved(metrics.SaveStored, 2)
	c.Claimed(1, 1)
	c.ClaimFailed(1)
	c.Run("mail", metrics.RunRetried)
	c.Retried("mail")
	c.Rescued(metrics.RescueReturned, 1)
	c.Quarantined()
	c.IgnoredContext()
	c.Purged("completed", 100)
	c.DatabaseError("locked")
	c.Late("mail", metrics.Lateness{Total: time.Millisecond, Claim: time.Millisecond})
	c.Batch("insert", 64)
	c.SetHeap(10)
	c.SetRunning(3)
	c.SetConcurrency(64)
	c.SetNodes(2)
	c.Clock(time.Millisecond, time.Second)
}

func registryOf(t *testing.T, c prometheus.Collector) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	return r
}

package metrics_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	internalmetrics "github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/metrics"
)

func TestSeriesFollowTheConventions(t *testing.T) {
	t.Parallel()
	c := metrics.New()
	everyEvent(c.Recorder())
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
	c.Recorder().Claimed(3, 2)
	c.Recorder().ClaimFailed(4)
	c.Recorder().Run("mail", internalmetrics.RunCompleted)
	c.Recorder().Run("mail", internalmetrics.RunCompleted)
	c.Recorder().Clock(1500*time.Microsecond, -2*time.Second)
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
	c.Recorder().Late("mail", internalmetrics.Lateness{
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
				c.Recorder().Run(fmt.Sprintf("tag-%d-%d", g, i), internalmetrics.RunCompleted)
			}
		})
	}
	wg.Wait()
	if got := testutil.CollectAndCount(c, "delaytask_runs_total"); got != 201 {
		t.Errorf("%d series, want 200 tags and one for all others", got)
	}
}

func TestBacklogOfATagThatIsLeftOutHasNoValue(t *testing.T) {
	t.Parallel()
	c := metrics.New()
	c.Recorder().SetBacklog([]internalmetrics.Backlog{{Tag: "mail", Due: 3, Oldest: time.Minute}, {Tag: "sms"}})
	c.Recorder().SetBacklog([]internalmetrics.Backlog{{Tag: "sms", Due: 1000, Oldest: time.Hour}})
	want := `
# HELP delaytask_due_tasks Tasks that are due and wait, of the tags that this process serves or none does; at most 1000.
# TYPE delaytask_due_tasks gauge
delaytask_due_tasks{tag="sms"} 1000
# HELP delaytask_oldest_due_seconds How long ago the oldest task that waits was due; 0 when none waits.
# TYPE delaytask_oldest_due_seconds gauge
delaytask_oldest_due_seconds{tag="sms"} 3600
`
	err := testutil.CollectAndCompare(c, strings.NewReader(want), "delaytask_due_tasks", "delaytask_oldest_due_seconds")
	if err != nil {
		t.Error(err)
	}
	c.Recorder().SetBacklog(nil)
	if n := testutil.CollectAndCount(c, "delaytask_due_tasks"); n != 0 {
		t.Errorf("%d values are left", n)
	}
}

func everyEvent(c internalmetrics.Recorder) {
	c.Saved(internalmetrics.SaveStored, 2)
	c.Claimed(1, 1)
	c.ClaimFailed(1)
	c.Run("mail", internalmetrics.RunRetried)
	c.Retried("mail")
	c.Rescued(internalmetrics.RescueReturned, 1)
	c.Quarantined()
	c.IgnoredContext()
	c.Purged("completed", 100)
	c.DatabaseError("locked")
	c.Late("mail", internalmetrics.Lateness{Total: time.Millisecond, Claim: time.Millisecond})
	c.Ran("mail", time.Second)
	c.SetBacklog([]internalmetrics.Backlog{{Tag: "mail", Due: 3, Oldest: time.Minute}})
	c.Batch("insert", 64)
	c.SetHeap(10)
	c.SetRunning(3)
	c.SetConcurrency(64)
	c.SetNodes(2)
	c.Clock(time.Millisecond, time.Second)
	c.SetClockHeld(true)
	c.SetPurgeLags(map[string]time.Duration{"completed": time.Hour})
}

func registryOf(t *testing.T, c prometheus.Collector) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	return r
}

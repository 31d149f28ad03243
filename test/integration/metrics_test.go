//go:build unix

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// A process shows the tags that it serves and those that none serves, from the table of every kind of database.
func TestBacklogIsReadFromTheTable(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		plain := open(t, d)
		served := open(t, d)
		serve(t, served, "elsewhere", nothing)
		warm(t, served, "elsewhere")
		servertest.OK(t, served.Pause(t.Context(), "elsewhere"))
		servertest.OK(t, plain.Pause(t.Context(), "paused"))
		for _, tag := range []string{"elsewhere", "paused", "paused", "unserved"} {
			save(t, plain, tag, 0)
		}
		save(t, plain, "later", time.Hour)

		measured := metrics.New()
		s := open(t, d, func(c *scheduler.Config) { c.Metrics = measured })
		servertest.OK(t, s.Register("idle", processor.Func(nothing)))
		serve(t, s, "paused", nothing)
		const want = `
# HELP delaytask_due_tasks Tasks that are due and wait, of the tags that this process serves or none does; at most 1000.
# TYPE delaytask_due_tasks gauge
delaytask_due_tasks{tag="idle"} 0
delaytask_due_tasks{tag="paused"} 2
delaytask_due_tasks{tag="unserved"} 1
# HELP delaytask_tag_nodes Live processes that serve the tag; 0 for a tag with due tasks that none serves.
# TYPE delaytask_tag_nodes gauge
delaytask_tag_nodes{tag="idle"} 1
delaytask_tag_nodes{tag="paused"} 1
delaytask_tag_nodes{tag="unserved"} 0
`
		servertest.Eventually(t, "the backlog is shown", func() bool {
			return testutil.CollectAndCompare(measured, strings.NewReader(want),
				"delaytask_due_tasks", "delaytask_tag_nodes") == nil
		})
	})
}

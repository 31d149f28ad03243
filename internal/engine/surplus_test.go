package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// A claim brings 500 rows at most, and while it is under way those of the one before run. So a drain takes about as many round trips as
// it has claims, once the flow is known; it may take three times that, and a second to begin.
func TestADrainKeepsUpWithAnyRoundTrip(t *testing.T) {
	for _, trip := range []time.Duration{3, 20, 50, 100} {
		trip *= time.Millisecond
		t.Run(fmt.Sprint(trip), func(t *testing.T) {
			inBubble(t, func(w *world) {
				const tasks = 6000
				due := row.At(time.Now().Add(-time.Minute))
				for i := range int64(tasks) {
					w.plain(1000+i, "a", due+row.Time(i))
				}
				w.engine(distant{w.store, trip}, map[string]processor.Func{"a": nothing})
				time.Sleep(3*tasks/claimRows*trip + time.Second)
				done, _, _ := w.store.List(w.Context(), row.Filter{Tag: "a", Status: new(row.Completed), Limit: tasks}, false)
				if len(done) < tasks {
					w.Errorf("%d of %d tasks are done", len(done), tasks)
				}
			})
		})
	}
}

package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

// Somebody changes rows by hand while they run: the results are refused, and nothing else happens.
func TestRowsEditedOrDeletedByHandWhileTheyRun(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d, quiet), pool(t, d)
		letGo, running := make(chan struct{}), make(chan int64, 10)
		serve(t, s, "t", func(_ context.Context, task *processor.Task) error {
			running <- task.ID
			<-letGo
			return nil
		})
		deleted, finished, moved := save(t, s, "t", 0), save(t, s, "t", 0), save(t, s, "t", 0)
		neighbour := save(t, s, "t", 0)
		for range 4 {
			receive(t, running, "task runs")
		}
		execute(t, db, "DELETE FROM delay_task_message WHERE id = ?", deleted)
		const update = "UPDATE delay_task_message SET version = version + 1, "
		execute(t, db, update+"status = 2, error_stack = 'by hand' WHERE id = ?", finished)
		execute(t, db, update+"status = 0, due_time = '2099-01-01 00:00:00.000000' WHERE id = ?", moved)
		close(letGo)
		reaches(t, s, neighbour, delaytask.Completed)
		stop(t, s)
		for id, want := range map[int64]string{finished: "2", moved: "0"} {
			if row := columns(t, db, id); row["status"] != want || row["version"] != "2" {
				t.Errorf("the row became %v, want status %s", row, want)
			}
		}
		if n := number(t, db, "SELECT COUNT(*) FROM delay_task_message"); n != 3 {
			t.Errorf("%d rows, want 3", n)
		}
	})
}

// Somebody parks a task at the end of all time, without counting its version up, when its timer is armed already. A server that
// cannot count a lease from then refuses the claim, and the row stays as it is. SQLite writes the year 10000 as text, which is no time:
// the row fails as others do that cannot be decoded.
func TestTaskParkedByHandHoldsUpNoNeighbour(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d, quiet), pool(t, d)
		serve(t, s, "t", nothing)
		warm(t, s, "t")
		var neighbours []int64
		var parked int64
		for delay := 5 * time.Second; parked == 0; delay *= 2 { // on a machine that stands still they may be claimed before
			at := time.Now().Add(delay)
			neighbours = neighbours[:0]
			for range 20 {
				neighbours = append(neighbours, save(t, s, "t", 0, delaytask.WithTime(at)))
			}
			const park = "UPDATE delay_task_message SET due_time = '9999-12-31 23:59:59.000000' WHERE status = 0 AND id = ?"
			execute(t, db, park, neighbours[7])
			if strings.HasPrefix(columns(t, db, neighbours[7])["due_time"], "9999") {
				parked = neighbours[7]
			}
		}
		neighbours = slices.Delete(neighbours, 7, 8)
		for _, id := range neighbours {
			if task := reaches(t, s, id, delaytask.Completed); task.Attempt != 1 {
				t.Errorf("a neighbour was tried %d times", task.Attempt)
			}
		}
		want := "0"
		if d.Kind == dbtest.SQLite {
			want = "2"
		}
		eventually(t, "the parked task has the status "+want, func() bool { return columns(t, db, parked)["status"] == want })
	})
}

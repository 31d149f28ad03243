package integration

import (
	"context"
	"testing"

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

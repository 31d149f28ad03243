package documents

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// section returns the statements below a heading of a page.
func section(t *testing.T, page, heading string) []string {
	t.Helper()
	_, text, found := strings.Cut(read(t, filepath.Join(root, page)), "\n"+heading+"\n")
	text, _, _ = strings.Cut(text, "\n#")
	all := document{page, text}.statements("sql")
	if !found || len(all) == 0 {
		t.Fatalf("%s has no statement below %s", page, heading)
	}
	return all
}

// follow runs statements on one connection.
func follow(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	conn, err := servertest.SQL(t, dsn).Conn(t.Context())
	servertest.OK(t, err)
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%v in\n%s", err, statement)
		}
	}
}

// Rows of a table with delays in seconds and times of UTC+8 come here with the moments and the states that they had.
func TestATableOfOnesOwnMovesIn(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		ctx, tasks := t.Context(), servertest.Open(t, db.DSN, scheduler.Config{})
		statements := section(t, "docs/coming-from.md", "## A table of your own")
		follow(t, db.DSN, statements[0], `INSERT INTO yb_delay_task_message
			(tag, message_body, status, delay_time, expected_time) VALUES
			('order.close', 'soon', 0, 10, UTC_TIMESTAMP() + INTERVAL 8 HOUR + INTERVAL 10 SECOND),
			('order.close', 'waits', 0, 3600, UTC_TIMESTAMP() + INTERVAL 9 HOUR),
			('order.close', 'executes', 1, 60, UTC_TIMESTAMP() + INTERVAL 8 HOUR),
			('order.close', 'completed', 2, 60, UTC_TIMESTAMP() + INTERVAL 8 HOUR),
			('order.close', 'failed', 3, 60, UTC_TIMESTAMP() - INTERVAL 40 DAY)`)
		follow(t, db.DSN, statements[1:]...)
		follow(t, db.DSN, statements[1:8]...) // once more moves nothing

		var right int
		servertest.OK(t, servertest.SQL(t, db.DSN).QueryRowContext(ctx, `SELECT COUNT(*)
			FROM delay_task_message m JOIN yb_delay_task_message y ON m.task_key = CONCAT('yb-', y.id)
			WHERE m.expected_time = y.expected_time - INTERVAL 8 HOUR
			AND m.delay_time = y.delay_time * 1000`).Scan(&right))
		page, err := tasks.List(ctx, delaytask.Filter{Tag: "order.close", Bodies: true})
		servertest.OK(t, err)
		moved := map[string]delaytask.TaskRow{}
		for _, task := range page.Tasks {
			moved[string(task.Body)] = task
		}
		waits, failed := moved["waits"], moved["failed"]
		if right != 2 || len(moved) != 2 || waits.Status != delaytask.Pending || failed.Status != delaytask.Failed {
			t.Fatalf("%d times are right, moved %+v", right, page.Tasks)
		}
		servertest.OK(t, tasks.Register("order.close", processor.Func(func(context.Context, *delaytask.Task) error {
			return nil
		})))
		servertest.OK(t, tasks.Start(ctx))
		servertest.OK(t, tasks.Retry(ctx, delaytask.ID(failed.ID)))
		_, err = tasks.Reschedule(ctx, delaytask.ID(waits.ID), 0)
		servertest.OK(t, err)
		for _, id := range []int64{waits.ID, failed.ID} {
			if task, err := tasks.Wait(ctx, id); err != nil || task.Status != delaytask.Completed {
				t.Errorf("the task is %+v, %v", task, err)
			}
		}
	})
}

// What a copy of production holds does not run when a process starts there.

// After the statement no token of before ends a lease.
func TestTokensOfBeforeAFailoverAreRefused(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		ctx, tasks := t.Context(), servertest.Open(t, db.DSN, scheduler.Config{})
		servertest.OK(t, tasks.Start(ctx))
		save(t, tasks, "order.close", "42")
		popped, err := tasks.Pop(ctx, "order.close", delaytask.PopWait(time.Minute))
		servertest.OK(t, err)
		follow(t, db.DSN, section(t, "docs/operations.md", "### After a failover that lost commits")...)
		if err := tasks.Finish(ctx, popped[0].Token()); !errors.Is(err, delaytask.ErrLeaseLost) {
			t.Errorf("the token of before: %v", err)
		}
	})
}

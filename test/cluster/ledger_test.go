package cluster

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

// ledger notes what was accepted and what ran, to hold it against the table.
type ledger struct {
	mu       sync.Mutex
	accepted map[int64]bool
	runs     map[token]int
}

// token is what fences an attempt. No two attempts may ever have the same.
type token struct{ id, version int64 }

func newLedger() *ledger { return &ledger{accepted: map[int64]bool{}, runs: map[token]int{}} }

func (l *ledger) process(_ context.Context, task *processor.Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[token{task.ID, task.Version}]++
	return nil
}

// save saves tasks one after the other until done is closed. A save of unknown outcome is made again with its id.
func (l *ledger) save(t *testing.T, s *delaytask.Scheduler, done <-chan struct{}) {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	var opts []delaytask.Option
	for {
		select {
		case <-done:
			if opts == nil {
				return
			}
		case <-t.Context().Done():
			return
		case <-pace.C:
		}
		id, err := s.SaveDelayTask(t.Context(), "t", "body", rand.N(3*time.Second), opts...)
		if unknown, ok := errors.AsType[*processor.OutcomeUnknownError](err); ok {
			opts = []delaytask.Option{delaytask.WithID(unknown.ID)}
		}
		if err == nil {
			opts = nil
			l.mu.Lock()
			l.accepted[id] = true
			l.mu.Unlock()
		}
	}
}

// more waits until n tasks more are accepted.
func (l *ledger) more(t *testing.T, n int) {
	t.Helper()
	before := l.count()
	eventually(t, "tasks are accepted", func() bool { return l.count() >= before+n })
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

// watch lets the database note every completion, on whichever member it is made.
func watch(t *testing.T, d dbtest.Database) {
	t.Helper()
	db := pool(t, d.Members[0])
	for _, statement := range []string{
		"CREATE TABLE completion (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, id BIGINT UNSIGNED, version BIGINT UNSIGNED)",
		"CREATE TRIGGER completion AFTER UPDATE ON delay_task_message FOR EACH ROW" +
			" INSERT INTO completion (id, version) SELECT NEW.id, NEW.version FROM DUAL WHERE NEW.status = 1 AND OLD.status <> 1",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// audit waits until everything is completed on every member named, and then holds what happened against what may.
func (l *ledger) audit(t *testing.T, members []string) {
	t.Helper()
	for _, dsn := range members {
		db := pool(t, dsn)
		eventually(t, "every task is completed", func() bool { return quiet(t, db) })
		for what, query := range map[string]string{
			"tasks completed twice": "SELECT COUNT(*) FROM (SELECT id FROM completion GROUP BY id HAVING COUNT(*) > 1) twice",
			"rows changed after that": "SELECT COUNT(*) FROM delay_task_message JOIN completion USING (id)" +
				" WHERE delay_task_message.version <> completion.version",
			"completions without a row": "SELECT COUNT(*) FROM completion LEFT JOIN delay_task_message USING (id) WHERE tag IS NULL",
		} {
			if n := number(t, db, query); n != 0 {
				t.Errorf("%d %s", n, what)
			}
		}
		stored := ids(t, db)
		l.mu.Lock()
		if n := number(t, db, "SELECT COUNT(*) FROM completion"); n < len(l.accepted) {
			t.Errorf("%d tasks are completed, %d were accepted", n, len(l.accepted))
		}
		for id := range l.accepted {
			if !stored[id] {
				t.Errorf("task %d was accepted and is not stored", id)
			}
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for token, n := range l.runs {
		if n > 1 {
			t.Errorf("%d attempts ran as %+v", n, token)
		}
	}
	t.Logf("%d tasks accepted, %d attempts", len(l.accepted), len(l.runs))
}

func ids(t *testing.T, db *sql.DB) map[int64]bool {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM delay_task_message")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	stored := map[int64]bool{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		stored[id] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return stored
}

// quiet reports whether no task is left, on a member that may just be coming back.
func quiet(t *testing.T, db *sql.DB) bool {
	var left int
	err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM delay_task_message WHERE status <> 1").Scan(&left)
	return err == nil && left == 0
}

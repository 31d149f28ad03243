//go:build unix

package integration

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

func TestServerKilledAmidSavesLosesNothingAccepted(t *testing.T) {
	t.Parallel()
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			m := dbtest.NewDisposable(t, kind)
			t.Run("killed", func(t *testing.T) {
				times := 2
				if kind == dbtest.MySQL { // takes long to start
					times = 1
				}
				outages(t, m.Database(t), times, func(c *callers) {
					m.Kill(t)
					c.suffer(t, 2*time.Second)
					m.Start(t)
				})
			})
			t.Run("hanging", func(t *testing.T) {
				outages(t, m.Database(t), 1, func(c *callers) {
					m.Freeze(t)
					c.suffer(t, 3*time.Second)
					m.Thaw(t)
				})
			})
		})
	}
}

const (
	outageTTR    = 3 * time.Second
	callsBetween = 100 // accepted of each kind before and after every outage

	// After an outage the leases that ran when it began end, and their rescue takes up to 5 s; unclaimed tasks are
	// found by a scan within 6 s.
	caughtUp = outageTTR + 5*time.Second
	servedIn = 3 * time.Second // until saves are accepted again
	startsIn = 6 * time.Second // lateness of what is saved then
)

// outages lets the server go away while callers save, and then compares their answers with the table.
func outages(t *testing.T, d dbtest.Database, times int, outage func(*callers)) {
	t.Helper()
	var log servertest.Log
	measured := metrics.New()
	s := open(t, d, func(cfg *scheduler.Config) {
		cfg.TTR, cfg.Metrics = outageTTR, measured
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	db := pool(t, d)
	watchCompletions(t, db)
	probe(t, d)
	var ran starts
	for _, kind := range callKinds {
		servertest.OK(t, s.Register(string(kind), processor.Func(ran.process)))
	}
	servertest.OK(t, s.Start(t.Context()))
	c := beginCalls(t, s, d)
	var back time.Time
	var away time.Duration
	for range times {
		c.accept(t, callsBetween)
		gone := time.Now()
		outage(c)
		back = time.Now()
		away += back.Sub(gone)
	}
	c.accept(t, callsBetween)
	calls := c.end()
	t.Logf("away for %v; saves: %+v", away, c.tally())
	settleUnknown(t, s, calls)
	servertest.Eventually(t, "everything is completed", func() bool {
		return number(t, db, "SELECT COUNT(*) FROM delay_task_message WHERE status <> 1") == 0
	})

	stored := storedTasks(t, db)
	judgeAnswers(t, calls, stored)
	judgeTransactions(t, db)
	again := judgeRuns(t, stored, &ran)
	judgeRecovery(t, calls, stored, back)
	judgeNoise(t, away, databaseErrors(t, measured), strings.Count(log.String(), "\n")-linesPerRescue*again)
}

// settleUnknown repeats saves of unknown outcome, as the error advises, twice.
func settleUnknown(t *testing.T, s *scheduler.Scheduler, calls []call) {
	t.Helper()
	for i := range calls {
		k := &calls[i]
		unknown, is := errors.AsType[*delaytask.OutcomeUnknownError](k.err)
		if !is || k.kind == txCall {
			continue
		}
		for range 2 {
			opts := append(k.options(), delaytask.WithID(unknown.ID))
			id, err := s.SaveDelayTask(t.Context(), string(k.kind), k.name+bulk, k.delay, opts...)
			if err != nil || id != unknown.ID {
				t.Errorf("%s: saved again with id %d: %d, %v", k.name, unknown.ID, id, err)
			}
		}
		k.id = unknown.ID
	}
}

// storedTask is a row at the end.
type storedTask struct {
	id                       int64
	name                     string
	expected, began, finish  time.Time
	completions, hasSameBody int
}

func (s storedTask) late() time.Duration { return s.began.Sub(s.expected) }

// watchCompletions has a trigger record every completion, in the transaction that completes.
func watchCompletions(t *testing.T, db *sql.DB) {
	t.Helper()
	execute(t, db, "CREATE TABLE completion (task BIGINT NOT NULL, INDEX (task))")
	execute(t, db, "CREATE TRIGGER completed AFTER UPDATE ON delay_task_message FOR EACH ROW"+
		" INSERT INTO completion SELECT NEW.id FROM DUAL WHERE NEW.status = 1 AND OLD.status <> 1")
}

// storedTasks returns the rows by the names of their saves.
func storedTasks(t *testing.T, db *sql.DB) map[string]storedTask {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id, message_body, expected_time, execution_time, finish_time,"+
		" (SELECT COUNT(*) FROM completion WHERE task = id) FROM delay_task_message")
	servertest.OK(t, err)
	defer rows.Close()
	stored := map[string]storedTask{}
	for rows.Next() {
		var task storedTask
		var expected, began, finish string
		servertest.OK(t, rows.Scan(&task.id, &task.name, &expected, &began, &finish, &task.completions))
		task.name = strings.TrimSuffix(task.name, bulk)
		task.expected, task.began, task.finish = utc(t, expected), utc(t, began), utc(t, finish)
		task.hasSameBody = stored[task.name].hasSameBody + 1
		stored[task.name] = task
	}
	servertest.OK(t, rows.Err())
	return stored
}

func utc(t *testing.T, column string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05.000000", column)
	servertest.OK(t, err)
	return at
}

// judgeAnswers compares the callers' answers with the rows.
func judgeAnswers(t *testing.T, calls []call, stored map[string]storedTask) {
	t.Helper()
	known := 0
	for i := range calls {
		k := &calls[i]
		task, exists := stored[k.name]
		if exists {
			known++
		}
		const soon = time.Second
		if over := k.took - k.patience; over > soon && over > allowed(soon, k.begun, k.begun.Add(k.took)) {
			t.Errorf("%s took %v, its context had %v", k.name, k.took, k.patience)
		}
		unknown := errors.Is(k.err, delaytask.ErrOutcomeUnknown)
		accepted := k.err == nil || unknown && k.kind != txCall // by now
		const full = 1114                                       // fails at once: an operator has to make room
		refused, _ := errors.AsType[*mysql.MySQLError](k.err)
		switch {
		case accepted && (task.id != k.id || task.hasSameBody != 1):
			t.Errorf("%s was accepted as task %d (first answer: %v), and the table has task %d, %d of this body",
				k.name, k.id, k.err, task.id, task.hasSameBody)
		case k.kind == txCall || k.err == nil:
		case !unknown && exists:
			t.Errorf("%s was refused with %v, and stored is task %d", k.name, k.err, task.id)
		case refused != nil && refused.Number == full:
		case k.patience == patient:
			t.Errorf("%s was patient and got %v after %v", k.name, k.err, k.took)
		case !errors.Is(k.err, context.DeadlineExceeded):
			t.Errorf("%s got %v, want a save that waits until its context ends", k.name, k.err)
		}
	}
	if known != len(stored) {
		t.Errorf("the callers know %d of %d tasks", known, len(stored))
	}
}

// judgeTransactions requires both rows of a caller's transaction or none.
func judgeTransactions(t *testing.T, db *sql.DB) {
	t.Helper()
	torn := number(t, db, "SELECT (SELECT COUNT(*) FROM marker WHERE task NOT IN (SELECT id FROM delay_task_message))"+
		" + (SELECT COUNT(*) FROM delay_task_message WHERE tag = ? AND id NOT IN (SELECT task FROM marker))",
		string(txCall))
	if torn != 0 {
		t.Errorf("%d transactions are stored by half", torn)
	}
}

// judgeRuns requires that every task is completed once, runs at least once, and never early. It returns how many runs
// were repeated.
func judgeRuns(t *testing.T, stored map[string]storedTask, ran *starts) (again int) {
	t.Helper()
	for _, task := range stored {
		times := ran.of(task.id)
		if task.completions != 1 || len(times) == 0 {
			t.Errorf("task %d was completed %d times and ran %d times", task.id, task.completions, len(times))
			continue
		}
		if early := task.expected.Sub(times[0]); early > 0 { // the server's clock is this machine's
			t.Errorf("task %d started %v early", task.id, early)
		}
		again += len(times) - 1
	}
	t.Logf("%d runs were repeated", again)
	return again
}

// judgeRecovery checks the tasks that were due when the server came back, when saves succeeded again, and the tasks of
// these saves.
func judgeRecovery(t *testing.T, calls []call, stored map[string]storedTask, back time.Time) {
	t.Helper()
	caught, latest := back, storedTask{}
	for _, task := range stored {
		if task.expected.Before(back) && task.finish.After(caught) {
			caught = task.finish
		}
	}
	served := map[callKind]time.Duration{}
	for i := range calls {
		k := &calls[i]
		since := k.begun.Add(k.took).Sub(back)
		if k.err != nil || since < 0 {
			continue
		}
		if first, known := served[k.kind]; !known || since < first {
			served[k.kind] = since
		}
		if k.begun.After(back) {
			if task := stored[k.name]; task.late() >= latest.late() {
				latest = task
			}
		}
	}
	within(t, caughtUp, back, caught, "catching up once the server was back")
	within(t, startsIn, latest.expected, latest.began, "the latest start of what was saved afterwards")
	for _, kind := range callKinds {
		within(t, servedIn, back, back.Add(served[kind]), "the first save afterwards: "+string(kind))
	}
}

// linesPerRescue is how many lines a lost lease logs: that the task is rescued, and that the late result is refused.
const linesPerRescue = 2

// judgeNoise requires that an outage costs few attempts and lines. A connection is refused in a tenth of a millisecond,
// so a busy loop counts thousands.
func judgeNoise(t *testing.T, away time.Duration, databaseErrors, lines int) {
	t.Helper()
	t.Logf("%d errors of the database were counted, %d lines were logged beside rescues", databaseErrors,
		max(0, lines))
	if perSecond := float64(databaseErrors) / away.Seconds(); perSecond > 500 {
		t.Errorf("%.0f errors of the database a second, want at most 500", perSecond)
	}
	if lines > 100 {
		t.Errorf("%d lines were logged beside rescues, want at most 100", lines)
	}
}

func databaseErrors(t *testing.T, measured *metrics.Metrics) (n int) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	servertest.OK(t, registry.Register(measured))
	families, err := registry.Gather()
	servertest.OK(t, err)
	for _, f := range families {
		if f.GetName() != "delaytask_database_errors_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			n += int(m.GetCounter().GetValue())
		}
	}
	return n
}

// starts is when each task was started.
type starts struct {
	mu sync.Mutex
	at map[int64][]time.Time
}

// process takes a moment, so that tasks are running at any time.
func (s *starts) process(ctx context.Context, task *delaytask.Task) error {
	now := time.Now()
	s.mu.Lock()
	if s.at == nil {
		s.at = map[int64][]time.Time{}
	}
	s.at[task.ID] = append(s.at[task.ID], now)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

func (s *starts) of(id int64) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[id]
}

//go:build unix

package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// A batch waits for another transaction at most once, and for at most a second. MySQL checks that limit once a second.
const lockBound = 2 * time.Second

// lock locks the task's row in another transaction.
func lock(t *testing.T, db *sql.DB, id int64) *sql.Tx {
	t.Helper()
	tx := begin(t, db)
	execute(t, tx, "SELECT id FROM delay_task_message WHERE id = ? FOR UPDATE", id)
	return tx
}

const soon = 1500 * time.Millisecond

// saveTogether saves tasks that are due at the same moment, so that they are in the same batches.
func saveTogether(t *testing.T, s *scheduler.Scheduler, n int, due time.Time, opts ...delaytask.Option) []int64 {
	t.Helper()
	opts = append(opts, delaytask.WithTime(due))
	items := slices.Repeat([]delaytask.Item{{Tag: "t", Options: opts}}, n)
	results, err := s.SaveDelayTasks(t.Context(), items)
	servertest.OK(t, err)
	saved := make([]int64, n)
	for i, r := range results {
		saved[i] = r.ID
	}
	return saved
}

func TestLockedRowInAClaimBatchHoldsUpNoOther(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		tasks, held, tx := saveAndLock(t, s, db, ran)
		for range len(tasks) - 1 {
			if servertest.Receive(t, ran, "neighbours run") == held {
				t.Fatal("the locked task ran")
			}
		}
		var worst delaytask.TaskRow
		for _, id := range slices.DeleteFunc(tasks, func(id int64) bool { return id == held }) {
			if task := reaches(t, s, id, delaytask.Completed); task.Lateness() >= worst.Lateness() {
				worst = task
			}
		}
		within(t, lockBound, worst.Expected, worst.Started, "lateness of the neighbours")
		commit(t, tx)
		unlocked := time.Now()
		task := reaches(t, s, held, delaytask.Completed)
		within(t, 6*time.Second, unlocked, time.Now(), "the locked task after its lock")
		if task.Attempt != 1 || task.CrashCount != 0 {
			t.Errorf("attempt %d, crash count %d; want 1 and 0", task.Attempt, task.CrashCount)
		}
	})
}

// saveAndLock saves tasks and locks one of them before they are due. It tries again with later ones where the machine
// was too slow.
func saveAndLock(
	t *testing.T, s *scheduler.Scheduler, db *sql.DB, ran <-chan int64,
) (tasks []int64, held int64, tx *sql.Tx) {
	t.Helper()
	for _, wait := range []time.Duration{soon, 4 * soon, 16 * soon} {
		due := time.Now().Add(wait)
		tasks = saveTogether(t, s, 20, due)
		held = tasks[10]
		tx = lock(t, db, held)
		if time.Until(due) > soon/3 { // some are claimed a little ahead
			return tasks, held, tx
		}
		commit(t, tx)
		for range tasks {
			servertest.Receive(t, ran, "tasks run that could not be locked in time")
		}
	}
	t.Fatal("three times tasks were due before one of them could be locked")
	panic("unreachable")
}

// holding returns a processor that reports its task and then waits until it may go on or loses its lease.
func holding() (p processor.Func, running chan int64, letGo chan struct{}) {
	running, letGo = make(chan int64, 1000), make(chan struct{})
	return func(ctx context.Context, task *delaytask.Task) error {
		running <- task.ID
		select {
		case <-letGo:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, running, letGo
}

func TestLockedRowHoldsUpNeitherRenewalsNorResultsOfOthers(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		// A quarter of the first lease is hardly more than the wait for a lock. The others are for a machine that
		// stalled for longer than that.
		for _, ttr := range []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second} {
			begun := time.Now()
			err := renewBesideALock(t, d, ttr)
			if err == nil {
				return
			}
			still := machine.Still(begun, time.Now())
			t.Logf("with leases of %v, while the machine stood still for %v: %v", ttr, still, err)
			if still < ttr/5 {
				break
			}
		}
		t.Error("a locked row cost leases")
	})
}

// renewBesideALock returns what was lost while one of many leases was locked.
func renewBesideALock(t *testing.T, d dbtest.Database, ttr time.Duration) (lost error) {
	t.Helper()
	s, db := open(t, d), pool(t, d)
	defer servertest.Stop(t, s)
	p, running, letGo := holding()
	serve(t, s, "t", p)
	tasks := saveTogether(t, s, 8, time.Now().Add(soon), delaytask.WithTTR(ttr))
	first := map[int64]time.Time{}
	for range tasks {
		id := servertest.Receive(t, running, "task runs")
		first[id] = get(t, s, id).Due
	}
	tx := lock(t, db, tasks[3])
	servertest.Eventually(t, "leases of the neighbours are renewed", func() bool {
		return !slices.ContainsFunc(tasks, func(id int64) bool {
			return id != tasks[3] && !get(t, s, id).Due.After(first[id])
		})
	})
	if !get(t, s, tasks[3]).Due.Equal(first[tasks[3]]) {
		lost = errors.Join(lost, errors.New("the locked lease was renewed too"))
	}
	commit(t, tx)
	servertest.Eventually(t, "the lease is renewed after its lock", func() bool {
		return get(t, s, tasks[3]).Due.After(first[tasks[3]])
	})

	tx = lock(t, db, tasks[3])
	close(letGo)
	done := time.Now()
	for _, id := range tasks {
		if id != tasks[3] {
			reaches(t, s, id, delaytask.Completed)
		}
	}
	within(t, lockBound, done, time.Now(), "results of the neighbours")
	if task := get(t, s, tasks[3]); task.Status != delaytask.Executing {
		lost = errors.Join(lost, fmt.Errorf("the locked task is %s", task.Status))
	}
	commit(t, tx)
	unlocked := time.Now()
	reaches(t, s, tasks[3], delaytask.Completed)
	within(t, 6*time.Second, unlocked, time.Now(), "the locked result after its lock")
	for _, id := range tasks {
		if task := reaches(t, s, id, delaytask.Completed); task.Attempt != 1 || task.CrashCount != 0 {
			lost = errors.Join(lost, fmt.Errorf("task %d: attempt %d, crash count %d; want 1 and 0", id, task.Attempt,
				task.CrashCount))
		}
	}
	if n := len(running); n > 0 {
		lost = errors.Join(lost, fmt.Errorf("%d tasks lost their lease and ran again", n))
	}
	return lost
}

// Another program locks pairs of rows in reverse order, all the time.
func TestDeadlocksLoseNothing(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		var tasks []int64
		for i := range 200 {
			tasks = append(tasks, save(t, s, "t", time.Second+time.Duration(i)*10*time.Millisecond))
		}
		storm, calm := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for n := 0; storm.Err() == nil; n++ {
				lockBackwards(storm, db, tasks[n%len(tasks)], tasks[(n*7+3)%len(tasks)])
			}
		}()
		runs := map[int64]int{}
		for range tasks {
			runs[servertest.Receive(t, ran, "task runs")]++
		}
		calm()
		<-over
		for _, id := range tasks {
			if task := reaches(t, s, id, delaytask.Completed); runs[id] != 1 || task.Attempt != 1 {
				t.Errorf("task %d ran %d times, attempt %d; want 1 and 1", id, runs[id], task.Attempt)
			}
		}
	})
}

// lockBackwards fails often, by design.
func lockBackwards(ctx context.Context, db *sql.DB, a, b int64) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback()
	for _, id := range []int64{max(a, b), min(a, b)} {
		if _, err := tx.ExecContext(ctx, "SELECT id FROM delay_task_message WHERE id = ? FOR UPDATE", id); err != nil {
			return
		}
	}
}

// The next process that joins removes the rows of dead nodes.
func TestALockedRowOfADeadNodeHoldsUpNoStart(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		servertest.OK(t, open(t, d).Stop(t.Context())) // has made the tables, and gives its number back
		db := pool(t, d)
		execute(t, db, "INSERT INTO delay_task_node (number, token, tags, heartbeat, version)"+
			" VALUES (1, 'dead', '[]', UTC_TIMESTAMP(6) - INTERVAL 2 HOUR, '1')")
		tx := begin(t, db)
		execute(t, tx, "SELECT number FROM delay_task_node WHERE number = 1 FOR UPDATE")
		open(t, d)
		servertest.OK(t, tx.Commit())
		open(t, d)
		var left int
		servertest.OK(t, db.QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM delay_task_node WHERE token = 'dead'").Scan(&left))
		if left != 0 {
			t.Error("the row is still there")
		}
	})
}

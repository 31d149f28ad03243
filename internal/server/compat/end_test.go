package compat

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

// A worker that exceeded the TTR has done the work: its job ends, and does not run again.
func TestFinishAfterTheTTREndsTheJob(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		q := serve(t, db.DSN)
		q.ok(q.add(`{"topic":"t","id":"1","ttr":60000}`))
		q.ok(q.command(`{"command":"add","topic":"t","id":"1","TTR":60}`))
		q.ok(q.get("t", "&wait=20000"))
		q.ok(q.get("t", "&wait=20000"))
		jobs := []delaytask.TaskRow{q.task("t", "1"), q.task("t", "s3:1")}
		servertest.Stop(t, q.scheduler) // no process is left to release the jobs
		late := stopped(t, db.DSN)
		servertest.Exec(t, db.DSN,
			"UPDATE delay_task_message SET due_time = '2020-01-01 00:00:00.000000' WHERE status = 3")
		for i, a := range []answer{late.complete("t", "1"), late.command(`{"command":"finish","id":"1"}`)} {
			after := late.byID(jobs[i].ID)
			if !late.ok(a).Late || after.Status != delaytask.Completed || after.Version != jobs[i].Version+1 {
				t.Errorf("answered %+v, and the job is %+v", a, after)
			}
		}
		late.refused(late.complete("t", "1"), "no unfinished job")
	})
}

func TestFinishEndsAJobThatWaitsAgain(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		q.ok(q.add(`{"topic":"t","id":"1","ttr":60000}`))
		popped, err := q.scheduler.Pop(t.Context(), "t")
		servertest.OK(t, err)
		servertest.OK(t, popped[0].Fail(t.Context(), processor.RetryAfter(errors.New("no"), time.Hour)))
		before := q.task("t", "1")
		answers := make(chan answer)
		for range 3 {
			go func() { answers <- q.complete("t", "1") }()
		}
		ended := 0
		for range 3 {
			if a := <-answers; a.Late {
				ended++
			} else {
				q.refused(a, "no unfinished job")
			}
		}
		after := q.byID(before.ID)
		if ended != 1 || after.Status != delaytask.Completed || after.Version != before.Version+1 ||
			after.Finished.IsZero() {
			t.Errorf("%d of them ended it, and the job is %+v", ended, after)
		}
	})
}

func TestTheHolderOfAJobThatAnotherFinishesHasLostItsLease(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		q.ok(q.command(`{"command":"add","topic":"t","id":"1","TTR":60}`))
		q.is(q.command(`{"command":"pop","topic":"t","wait":20}`), "1", "")
		// As if the TTR had ended.
		servertest.OK(t, q.scheduler.Release(t.Context(), tokenOf(q.task("t", "s3:1"))))
		popped, err := q.scheduler.Pop(t.Context(), "t")
		servertest.OK(t, err)
		q.is(q.command(`{"command":"finish","id":"1"}`), "1", "")
		if err := popped[0].Finish(t.Context()); !errors.Is(err, delaytask.ErrLeaseLost) {
			t.Errorf("the other holder: %v, want ErrLeaseLost", err)
		}
		if task := q.byID(popped[0].ID); task.Status != delaytask.Completed || task.Version != popped[0].Version+1 {
			t.Errorf("the job is %+v", task)
		}
	})
}

func tokenOf(task delaytask.TaskRow) delaytask.Token {
	return delaytask.Token{ID: task.ID, Version: task.Version}
}

// Of two finishes of the same lease one ends it, and the other is refused.
func TestFinishAndDeleteAtOnceEndAJobOnce(t *testing.T) {
	q := onSQLite(t)
	for range 20 {
		q.ok(q.command(`{"command":"add","topic":"t","id":"1","TTR":60}`))
		q.is(q.command(`{"command":"pop","topic":"t","wait":20}`), "1", "")
		answers := make(chan answer)
		commands := []string{`{"command":"finish","id":"1"}`, `{"command":"finish","id":"1"}`,
			`{"command":"delete","id":"1"}`}
		for _, body := range commands {
			go func() { answers <- q.command(body) }()
		}
		ended := 0
		for range commands {
			if a := <-answers; a.Success {
				ended++
			}
		}
		if ended != 1 {
			t.Errorf("%d of them ended the job", ended)
		}
	}
}

// A worker of one protocol can end a task that was saved in another way: the id that it gets names the task.
func TestTasksOfOtherFacesAreFinishedToo(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		save := func(body string, options ...delaytask.Option) {
			t.Helper()
			if _, err := q.scheduler.SaveDelayTask(t.Context(), "t", body, 0, options...); err != nil {
				t.Fatal(err)
			}
		}
		pop := func() answer { t.Helper(); return q.ok(q.command(`{"command":"pop","topic":"t","wait":20}`)) }
		get := func() answer { t.Helper(); return q.ok(q.get("t", "&wait=20000")) }
		finish := func(id string) answer { t.Helper(); return q.command(`{"command":"finish","id":"` + id + `"}`) }

		save("no key")
		a := pop()
		q.refused(q.complete("other", a.ID), "no unfinished job")
		q.ok(finish(a.ID))
		q.refused(finish(a.ID), "no unfinished job")
		save("no key")
		q.ok(q.complete("t", get().ID))

		save("a key", delaytask.WithKey("k"))
		a = pop()
		q.refused(finish("k"), "no unfinished job")
		q.ok(finish(a.ID))
		save("a key", delaytask.WithKey("k"))
		q.is(get(), "k", "a key")
		q.ok(q.complete("t", "k"))

		save("another app's", delaytask.WithKey("k"), delaytask.WithApp("shop"))
		a = get()
		q.refused(q.complete("t", "k"), "no unfinished job")
		q.ok(q.complete("t", a.ID))

		q.ok(q.command(`{"command":"add","topic":"t","id":"1","TTR":60,"body":"global"}`))
		a = get()
		q.refused(q.complete("t", "1"), "no unfinished job")
		q.ok(q.complete("t", a.ID))
		page, err := q.scheduler.List(t.Context(), delaytask.Filter{Status: delaytask.Completed})
		if err != nil || len(page.Tasks) != 6 {
			t.Errorf("%d completed, %v, want 6", len(page.Tasks), err)
		}
	})
}

func TestServerThatIsStoppedSaysSo(t *testing.T) {
	q := onSQLite(t)
	servertest.Stop(t, q.scheduler)
	for _, r := range [][3]string{
		{"POST", "/o/add", `{"topic":"t","id":"1"}`}, {"GET", "/o/get?topic=t"}, {"GET", "/o/complete?topic=t&id=1"},
		{"POST", "/compat/topics", `{"command":"delete","id":"1"}`},
	} {
		a := q.Want(503, "", r[0], r[1], r[2])
		if !strings.Contains(a.Text, "stopped") || !strings.HasPrefix(a.Text, `{"success":false`) {
			t.Errorf("%v: answered %s", r, a.Text)
		}
	}
}

func TestJobThatMayBeStoredIsTheServicesTrouble(t *testing.T) {
	t.Parallel()
	dsn := dbtest.New(t, dbtest.SQLite).DSN
	q := serve(t, dsn)
	locked, err := servertest.SQL(t, dsn).BeginTx(t.Context(), nil)
	servertest.OK(t, err)
	defer func() { _ = locked.Rollback() }()
	q.patience = time.Second // longer than the statement takes to be sent
	if a := q.Want(503, "", "POST", "/o/add", `{"topic":"t","id":"1"}`); !strings.Contains(a.Text, "add it again") {
		t.Errorf("answered %s", a.Text)
	}
}

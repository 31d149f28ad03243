package compat

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/inbound"
	"github.com/delaytask/delaytask/processor"
)

// A worker that was too slow has done the work all the same: its job ends, and is not done again.
func TestFinishAfterTheTTREndsTheJob(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		q := serve(t, db.DSN)
		q.ok(q.add(`{"topic":"t","id":"1","ttr":60000}`))
		q.ok(q.command(`{"command":"add","topic":"t","id":"1","TTR":60}`))
		q.ok(q.get("t", "&wait=20000"))
		q.ok(q.get("t", "&wait=20000"))
		jobs := []delaytask.Task{q.task("t", "1"), q.task("t", "s3:1")}
		stop(t, q.scheduler)               // nobody is left who would give the jobs back
		late := listen(t, open(t, db.DSN)) // not started
		endLeases(t, db)
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
		if err != nil {
			t.Fatal(err)
		}
		if err := popped[0].Fail(t.Context(), processor.RetryAfter(errors.New("no"), time.Hour)); err != nil {
			t.Fatal(err)
		}
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
		if ended != 1 || after.Status != delaytask.Completed || after.Version != before.Version+1 || after.Finished.IsZero() {
			t.Errorf("%d of them ended it, and the job is %+v", ended, after)
		}
	})
}

func TestWhoHoldsAJobThatAnotherFinishesHasLostItsLease(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		q.ok(q.command(`{"command":"add","topic":"t","id":"1","TTR":60}`))
		q.is(q.command(`{"command":"pop","topic":"t","wait":20}`), "1", "")
		if err := q.scheduler.Release(t.Context(), tokenOf(q.task("t", "s3:1"))); err != nil { // as if the TTR had ended
			t.Fatal(err)
		}
		popped, err := q.scheduler.Pop(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		q.is(q.command(`{"command":"finish","id":"1"}`), "1", "")
		if err := popped[0].Finish(t.Context()); !errors.Is(err, delaytask.ErrLeaseLost) {
			t.Errorf("the other holder: %v, want ErrLeaseLost", err)
		}
		if task := q.byID(popped[0].ID); task.Status != delaytask.Completed || task.Version != popped[0].Version+1 {
			t.Errorf("the job is %+v", task)
		}
	})
}

func tokenOf(task delaytask.Task) delaytask.Token {
	return delaytask.Token{ID: task.ID, Version: task.Version}
}

// endLeases sets the end of all leases into the past.
func endLeases(t *testing.T, db dbtest.Database) {
	t.Helper()
	driver, dsn := "mysql", db.DSN
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(5000)"
	}
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const past = "UPDATE delay_task_message SET due_time = '2020-01-01 00:00:00.000000' WHERE status = 3"
	result, err := pool.ExecContext(t.Context(), past)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 2 || err != nil {
		t.Fatalf("%d leases, %v", n, err)
	}
}

// Of two that look at the same lease one ends it, and the other is told.
func TestFinishAndDeleteAtOnceEndAJobOnce(t *testing.T) {
	q := onSQLite(t)
	for range 20 {
		q.ok(q.command(`{"command":"add","topic":"t","id":"1","TTR":60}`))
		q.is(q.command(`{"command":"pop","topic":"t","wait":20}`), "1", "")
		answers := make(chan answer)
		commands := []string{`{"command":"finish","id":"1"}`, `{"command":"finish","id":"1"}`, `{"command":"delete","id":"1"}`}
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

// A worker of one protocol can end what was saved in another way: the id that it gets finds the task.
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

func TestWaitingPopReturnsWhenTheServerStops(t *testing.T) {
	q := onSQLite(t)
	got := make(chan answer)
	go func() { got <- q.get("t", "&wait=50000") }()
	waitFor(t, func() bool { return served(t, q.scheduler, "t") })
	q.stopping()
	q.is(<-got, "", "")
}

func TestJobOfACallerWhoHasGoneIsHandedOutAgain(t *testing.T) {
	q := onSQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.server.URL+"/o/get?topic=t&wait=50000", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		resp, err := q.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	waitFor(t, func() bool { return served(t, q.scheduler, "t") })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	q.ok(q.add(`{"topic":"t","id":"1","ttr":3600000,"body":"x"}`))
	q.is(q.get("t", "&wait=20000"), "1", "x") // and not after the TTR
}

// served reports whether somebody pops the tag or has lately.
func served(t *testing.T, s *delaytask.Scheduler, tag string) bool {
	t.Helper()
	stats, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range stats {
		if one.Tag == tag && one.Served {
			return true
		}
	}
	return false
}

// waitFor asks until it is so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the test is over")
		}
	}
}

func TestServerThatIsStoppedSaysSo(t *testing.T) {
	q := onSQLite(t)
	stop(t, q.scheduler)
	for _, r := range [][3]string{
		{"POST", "/o/add", `{"topic":"t","id":"1"}`}, {"GET", "/o/get?topic=t"}, {"GET", "/o/complete?topic=t&id=1"},
		{"POST", "/compat/topics", `{"command":"delete","id":"1"}`},
	} {
		status, text := q.send(r[0], r[1], r[2])
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "stopped") ||
			!strings.HasPrefix(text, `{"success":false`) {
			t.Errorf("%v: answered %d %s", r, status, text)
		}
	}
}

func TestJobThatMayBeStoredIsTheServicesTrouble(t *testing.T) {
	t.Parallel()
	dsn := dbtest.New(t, dbtest.SQLite).DSN
	q := serve(t, dsn)
	db, err := sql.Open("sqlite", strings.TrimPrefix(dsn, "sqlite:")+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	locked, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locked.Rollback() }()
	q.patience = 50 * time.Millisecond
	status, text := q.send("POST", "/o/add", `{"topic":"t","id":"1"}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "add it again") {
		t.Errorf("answered %d %s", status, text)
	}
}

func TestNewWantsItsParts(t *testing.T) {
	t.Parallel()
	if h, err := New(Config{}); h != nil || err == nil {
		t.Errorf("got %v, %v", h, err)
	}
}

func TestJobsThatNobodyIsLeftToHearOfAreGivenBack(t *testing.T) {
	q := onSQLite(t)
	q.ok(q.add(`{"topic":"t","id":"1","ttr":3600000,"body":"x"}`))
	popped, err := q.scheduler.Pop(t.Context(), "t")
	if err != nil || len(popped) != 1 {
		t.Fatalf("popped %v, %v", popped, err)
	}
	h := &Handler{log: slog.New(slog.DiscardHandler)}
	inbound.GiveBack(h.log, q.scheduler, popped)
	inbound.GiveBack(h.log, q.scheduler, popped) // a lease that is lost is only logged
	q.is(q.get("t", "&wait=20000"), "1", "x")
	if task := q.task("t", "1"); task.Attempt != 1 || len(task.Errors) != 0 {
		t.Errorf("attempt %d, %v: it was to cost nothing", task.Attempt, task.Errors)
	}
}

package compat

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestS11AddTakesMilliseconds(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		early := q.scheduler.Now()
		q.is(q.ok(q.add(`{"topic":"mail","id":"7","delay":1500,"ttr":60000,"body":"{\"to\":\"é 📮\"}"}`)), "7", "")
		late := q.scheduler.Now()
		task := q.task("mail", "7")
		if task.Delay != 1500*time.Millisecond || task.TTR != time.Minute || string(task.Body) != `{"to":"é 📮"}` {
			t.Errorf("stored %v, %v, %s", task.Delay, task.TTR, task.Body)
		}
		const delay, vague = 1500 * time.Millisecond, 200 * time.Millisecond
		if due := task.Expected; due.Before(early.Add(delay-vague)) || due.After(late.Add(delay+vague)) {
			t.Errorf("saved between %v and %v, and due at %v, want 1.5 s later", early, late, due)
		}
		if task.MaxAttempts != 0 {
			t.Errorf("at most %d attempts, want no limit", task.MaxAttempts)
		}
	})
}

func TestS12GetPullsOneReadyJobAndCompleteEndsIt(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		q.is(q.get("mail", ""), "", "")
		q.ok(q.add(`{"topic":"mail","id":"a","delay":0,"ttr":60000,"body":"first"}`))
		q.ok(q.add(`{"topic":"mail","id":"later","delay":3600000,"ttr":60000,"body":"not yet"}`))
		q.ok(q.add(`{"topic":"other","id":"b","delay":0,"ttr":60000,"body":"of another topic"}`))
		task := q.task("mail", "a")
		q.is(q.get("mail", "&wait=20000"), "a", "first")
		q.is(q.get("mail", ""), "", "")
		q.is(q.complete("mail", "a"), "a", "")
		if task = q.byID(task.ID); task.Status != delaytask.Completed {
			t.Errorf("status %s, want completed", task.Status)
		}
		q.refused(q.complete("mail", "a"), "no unfinished job")
		q.refused(q.complete("mail", "later"), "not handed out")
		q.refused(q.complete("mail", "b"), "no unfinished job")
	})
}

// Old clients poll without a wait: a ready job must be found, unless the machine stalled.
func TestS12GetFindsWhatWasJustAdded(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		const rounds = 50
		missed := 0
		for range rounds {
			q.ok(q.add(`{"topic":"a","id":"1","delay":0,"ttr":60000,"body":"x"}`))
			got := q.get("a", "")
			if got.ID == "" {
				missed++
				got = q.get("a", "&wait=20000")
			}
			q.is(got, "1", "x")
			q.ok(q.complete("a", "1"))
		}
		if missed > rounds*9/10 {
			t.Errorf("%d of %d jobs were not there at once", missed, rounds)
		}
	})
}

func TestS14IDIsUniqueWithinATopic(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		const first = `{"topic":"a","id":"1","delay":3600000,"ttr":5000,"body":"x"}`
		q.ok(q.add(first))
		q.ok(q.add(`{"topic":"b","id":"1","delay":0,"ttr":5000,"body":"of another topic"}`))
		before := q.task("a", "1")
		q.is(q.ok(q.add(first)), "1", "") // a client that lost the answer
		for _, other := range []string{
			`{"topic":"a","id":"1","delay":3600000,"ttr":5000,"body":"y"}`,
			`{"topic":"a","id":"1","delay":3600001,"ttr":5000,"body":"x"}`,
			`{"topic":"a","id":"1","delay":3600000,"ttr":6000,"body":"x"}`,
		} {
			q.refused(q.add(other), "differs")
		}
		after := q.task("a", "1")
		if after.ID != before.ID || after.Version != before.Version || string(after.Body) != "x" {
			t.Errorf("the job changed from %+v to %+v", before, after)
		}
		if after.Status != delaytask.Pending || after.Created.IsZero() || after.Expected.Before(after.Created) {
			t.Errorf("it keeps %s, %v, %v", after.Status, after.Expected, after.Created)
		}
		q.is(q.get("b", "&wait=20000"), "1", "of another topic")
		q.ok(q.complete("b", "1"))
		q.ok(q.add(`{"topic":"b","id":"1","delay":0,"body":"the id is free again"}`))
		q.is(q.get("b", "&wait=20000"), "1", "the id is free again")
	})
}

func TestS15JobComesBackAfterItsTTR(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		q.ok(q.add(`{"topic":"a","id":"1","delay":0,"ttr":1000,"body":"x"}`))
		id, began := q.task("a", "1").ID, time.Now()
		q.is(q.get("a", "&wait=20000"), "1", "x")
		q.ok(q.complete("a", q.get("a", "&wait=20000").ID))
		if took := time.Since(began); took < time.Second {
			t.Errorf("it was back %v after it was handed out, before its TTR had ended", took)
		}
		task := q.byID(id)
		if task.Status != delaytask.Completed || task.CrashCount != 0 || len(task.Errors) == 0 {
			t.Fatalf("completed as %+v: its TTR has ended, and nothing crashed", task)
		}
	})
}

func TestS16JobsAndTheirTimersOutliveARestart(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		q := serve(t, db.DSN)
		q.ok(q.add(`{"topic":"a","id":"soon","delay":500,"ttr":60000,"body":"x"}`))
		q.ok(q.command(`{"command":"add","topic":"b","id":"missed","delay":0,"TTR":60,"body":"y"}`))
		q.ok(q.command(`{"command":"add","topic":"c","id":"taken","delay":0,"TTR":1,"body":"z"}`))
		q.is(q.command(`{"command":"pop","topic":"c","wait":20}`), "taken", "z")
		servertest.Stop(t, q.scheduler)
		q = serve(t, db.DSN)
		q.is(q.command(`{"command":"pop","topic":"b","wait":20}`), "missed", "y")
		q.is(q.get("a", "&wait=20000"), "soon", "x")
		id := q.task("a", "soon").ID
		q.ok(q.complete("a", "soon"))
		if task := q.byID(id); task.Started.Before(task.Expected) {
			t.Errorf("handed out at %v, expected %v", task.Started, task.Expected)
		}
		q.is(q.command(`{"command":"pop","topic":"c","wait":20}`), "taken", "z")
		q.ok(q.command(`{"command":"finish","id":"taken"}`))
	})
}

func TestS17ATopicStartsWithItsFirstJobAndWakesForAnEarlierOne(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		got := make(chan answer)
		go func() { got <- q.get("never-seen", "&wait=50000") }()
		q.ok(q.add(`{"topic":"never-seen","id":"far","delay":3600000,"ttr":60000,"body":"x"}`))
		q.ok(q.add(`{"topic":"never-seen","id":"near","delay":300,"ttr":60000,"body":"y"}`))
		q.is(<-got, "near", "y")
	})
}

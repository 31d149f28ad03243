package compat

import (
	"fmt"
	"slices"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestS35TimerIsWokenByAnEarlierJob(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		q.ok(q.command(`{"command":"add","topic":"a","id":"far","delay":3600,"TTR":60,"body":"x"}`))
		got := make(chan answer)
		go func() { got <- q.command(`{"command":"pop","topic":"a","wait":50}`) }()
		q.ok(q.command(`{"command":"add","topic":"a","id":"near","delay":1,"TTR":60,"body":"y"}`))
		q.is(<-got, "near", "y")
		q.ok(q.command(`{"command":"finish","id":"near"}`))
	})
}

func TestS35PopWaitsAndTakesSeveralJobs(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		if a := q.command(`{"command":"pop","topic":"a","max":10}`); !a.Success || a.Jobs == nil || len(a.Jobs) != 0 || a.ID != "" {
			t.Errorf("got %+v of an empty topic", a)
		}
		const all = 7
		for n := range all {
			q.ok(q.command(fmt.Sprintf(`{"command":"add","topic":"a","id":"%d","delay":0,"TTR":60,"body":"b%d"}`, n, n)))
		}
		var ids []string
		for len(ids) < all {
			a := q.ok(q.command(`{"command":"pop","topic":"a","wait":20,"max":3}`))
			if len(a.Jobs) < 1 || len(a.Jobs) > 3 || a.Jobs[0] != (job{a.ID, a.Value}) {
				t.Fatalf("got %+v", a)
			}
			for _, one := range a.Jobs {
				if one.Value != "b"+one.ID {
					t.Errorf("got %+v", one)
				}
				ids = append(ids, one.ID)
				q.ok(q.command(`{"command":"finish","id":"` + one.ID + `"}`))
			}
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) != all {
			t.Errorf("got %v, want each job once", ids)
		}
		q.ok(q.add(`{"topic":"b","id":"x","body":"y"}`)) // the other protocol has the same two
		if a := q.ok(q.get("b", "&max=5&wait=20000")); !slices.Equal(a.Jobs, []job{{"x", "y"}}) {
			t.Errorf("got %+v", a)
		}
	})
}

func TestS35StorageOfItsOwnIsDurable(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	q := serve(t, db.DSN)
	q.ok(q.command(`{"command":"add","topic":"a","id":"waits","delay":0,"TTR":60,"body":"x"}`))
	q.ok(q.command(`{"command":"add","topic":"b","id":"taken","delay":0,"TTR":1,"body":"y"}`))
	q.is(q.command(`{"command":"pop","topic":"b","wait":20}`), "taken", "y")
	stop(t, q.scheduler)
	q = serve(t, db.DSN)
	q.is(q.command(`{"command":"pop","topic":"a","wait":20}`), "waits", "x")
	q.ok(q.command(`{"command":"pop","topic":"b","wait":20}`))
	q.ok(q.command(`{"command":"finish","id":"taken"}`))
}

// Instances find each other in the database, where everybody can look them up; a client may ask any of them.
func TestS35InstancesAreFoundByName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		one, two := serve(t, db.DSN), serve(t, db.DSN)
		one.ok(one.command(`{"command":"add","topic":"a","id":"1","delay":0,"TTR":60,"body":"x"}`))
		two.is(two.command(`{"command":"pop","topic":"a","wait":20}`), "1", "x")
		one.ok(one.command(`{"command":"finish","id":"1"}`))
		nodes, err := one.scheduler.Nodes(t.Context())
		if err != nil || len(nodes) != 2 {
			t.Errorf("found %+v, %v, want both", nodes, err)
		}
	})
}

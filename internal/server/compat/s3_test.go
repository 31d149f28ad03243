package compat

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestS31JobHasTopicIDDelayTTRAndBody(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		const job = `{"command":"add","topic":"order","id":"o-1","delay":2,"TTR":90,"body":"{\"n\":1}"}`
		q.is(q.ok(q.command(job)), "o-1", "")
		task := q.task("any", "s3:o-1")
		if task.Tag != "order" || task.Delay != 2*time.Second || task.TTR != 90*time.Second ||
			string(task.Body) != `{"n":1}` {
			t.Errorf("stored %+v", task)
		}
		if task.MaxAttempts != 0 {
			t.Errorf("at most %d attempts, want no limit", task.MaxAttempts)
		}
		q.is(q.ok(q.command(job)), "o-1", "")
		q.refused(q.command(`{"command":"add","topic":"another","id":"o-1","delay":2,"TTR":90,"body":"{\"n\":1}"}`),
			"differs")
		q.ok(q.add(`{"topic":"order","id":"o-1","delay":2000,"body":"the other protocol has its own ids"}`))
	})
}

func TestS32JobGoesFromDelayToReadyToReservedToDeleted(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		is := func(id int64, want delaytask.Status) {
			t.Helper()
			if task := q.byID(id); task.Status != want {
				t.Errorf("status %s, want %s", task.Status, want)
			}
		}
		q.ok(q.command(`{"command":"add","topic":"a","id":"1","delay":1,"TTR":60,"body":"x"}`))
		id := q.task("any", "s3:1").ID
		q.is(q.command(`{"command":"pop","topic":"a","wait":20}`), "1", "x")
		q.ok(q.command(`{"command":"finish","id":"1"}`))
		is(id, delaytask.Completed)

		q.ok(q.command(`{"command":"add","topic":"a","id":"2","delay":0,"TTR":60,"body":"y"}`))
		id = q.task("any", "s3:2").ID
		q.is(q.command(`{"command":"pop","topic":"a","wait":20}`), "2", "y")
		is(id, delaytask.Executing)
		q.is(q.ok(q.command(`{"command":"delete","id":"2"}`)), "2", "")
		is(id, delaytask.Cancelled)
		q.refused(q.command(`{"command":"finish","id":"2"}`), "no unfinished job")

		q.ok(q.command(`{"command":"add","topic":"a","id":"3","delay":3600,"TTR":60,"body":"z"}`))
		id = q.task("any", "s3:3").ID
		q.is(q.command(`{"command":"pop","topic":"a"}`), "", "") // delay
		is(id, delaytask.Pending)
		q.refused(q.command(`{"command":"finish","id":"3"}`), "not handed out")
		q.ok(q.command(`{"command":"delete","id":"3"}`))
		is(id, delaytask.Cancelled)
		q.refused(q.command(`{"command":"delete","id":"3"}`), "no unfinished job")
	})
}

func TestS33ProtocolIsOneCommandObject(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		for _, step := range []struct{ body, want string }{
			{`{"command":"add","topic":"t","id":"1","delay":0,"TTR":60,"body":"<b>&"}`,
				`{"success":true,"error":"","id":"1","value":""}`},
			{`{"command":"pop","topic":"t","wait":20}`, `{"success":true,"error":"","id":"1","value":"<b>&"}`},
			{`{"command":"pop","topic":"t"}`, `{"success":true,"error":"","id":"","value":""}`},
			{`{"command":"finish","id":"1"}`, `{"success":true,"error":"","id":"1","value":""}`},
			{`{"command":"delete","id":"1"}`,
				`{"success":false,"error":"there is no unfinished job with this id","id":"","value":""}`},
			{`{"command":"add","topic":"t","id":2,"delay":"0","TTR":"60","body":{"n":[1, 2]},"ttl":3,"x":{"y":null}}`,
				`{"success":true,"error":"","id":"2","value":""}`},
			{`{"command":"pop","topic":"t","wait":20}`,
				`{"success":true,"error":"","id":"2","value":"{\"n\":[1, 2]}"}`},
			{`{"command":"finish","id":"2","topic":"ignored"}`, `{"success":true,"error":"","id":"2","value":""}`},
		} {
			if got := q.Want(200, "", http.MethodPost, "/compat/topics", step.body).Text; got != step.want+"\n" {
				t.Errorf("%s\n got %s want %s", step.body, got, step.want)
			}
		}
	})
}

// Instances share the database: a client may call any of them.
func TestS34SeveralInstancesHandOutEachJobOnce(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		const jobs = 60
		instances := []*queue{serve(t, db.DSN), serve(t, db.DSN), serve(t, db.DSN)}
		if nodes, err := instances[0].scheduler.Nodes(t.Context()); err != nil || len(nodes) != len(instances) {
			t.Errorf("found %+v, %v, want all", nodes, err)
		}
		for n := range jobs {
			q := instances[n%len(instances)]
			q.ok(q.command(fmt.Sprintf(`{"command":"add","topic":"a","id":"%d","delay":0,"TTR":60,"body":"x"}`, n)))
		}
		handedOut := make(chan string, 2*jobs)
		var finished atomic.Int64
		var wg sync.WaitGroup
		for i, q := range instances {
			wg.Go(func() {
				for finished.Load() < jobs {
					a := q.command(`{"command":"pop","topic":"a","wait":1}`)
					if a.ID == "" {
						continue
					}
					handedOut <- a.ID
					other := instances[(i+1)%len(instances)] // any instance takes the finish
					if f := other.command(fmt.Sprintf(`{"command":"finish","id":%q}`, a.ID)); !f.Success {
						t.Errorf("finish of %s: %s", a.ID, f.Error)
					}
					finished.Add(1)
				}
			})
		}
		wg.Wait()
		close(handedOut)
		times := map[string]int{}
		for id := range handedOut {
			if times[id]++; times[id] > 1 {
				t.Errorf("job %s was handed out %d times", id, times[id])
			}
		}
	})
}

func TestS35PopWaitsAndTakesSeveralJobs(t *testing.T) {
	each(t, func(t *testing.T, q *queue) {
		if a := q.command(`{"command":"pop","topic":"a","max":10}`); !a.Success || a.Jobs == nil || len(a.Jobs) != 0 ||
			a.ID != "" {
			t.Errorf("got %+v of an empty topic", a)
		}
		const all = 7
		for n := range all {
			q.ok(q.command(fmt.Sprintf(`{"command":"add","topic":"a","id":"%d","delay":0,"TTR":60,"body":"b%d"}`, n,
				n)))
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

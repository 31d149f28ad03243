package push

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/report"
)

func entry(id int64, app string, tags ...string) *target {
	return &target{Receiver: row.Receiver{ID: id, App: app, Tags: tags}}
}

func ids(all []*target) (list []int64) {
	for _, to := range all {
		list = append(list, to.ID)
	}
	return list
}

// Applications that save in turn must not get the same address every time, nor must a new directory repeat it.
func TestEveryPairGoesRoundByItself(t *testing.T) {
	t.Parallel()
	receivers := []*target{entry(1, "a", "t"), entry(2, "a", "t", "u"), entry(3, "b", "t"), entry(4, "b", "t")}
	var d directory
	counts := map[int64]int{}
	for range 6 {
		d = newDirectory(receivers, d)
		for _, app := range []string{"a", "b"} {
			found := d.find("t", app)
			if len(found) != 2 || found[0].App != app || found[1].App != app || found[0].ID == found[1].ID {
				t.Fatalf("for %s of t: %v", app, ids(found))
			}
			counts[found[0].ID]++
		}
	}
	for id := int64(1); id <= 4; id++ {
		if counts[id] != 3 {
			t.Errorf("of 12 tasks %d got %d, want 3", id, counts[id])
		}
	}
	if found := d.find("t", ""); len(found) != 4 {
		t.Errorf("without an application: %v", ids(found))
	}
	for _, pair := range [][2]string{{"u", "b"}, {"t", "c"}, {"v", ""}, {"", ""}} {
		if found := d.find(pair[0], pair[1]); found != nil {
			t.Errorf("for %q of %q: %v", pair[1], pair[0], ids(found))
		}
	}
}

func TestManyUnservedTasksWaitLongerThanAFew(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var few pace
	for range 100 {
		if d := few.wait(now); d < leastWait || d > usualWait {
			t.Fatalf("one of a few waits %v", d)
		}
	}
	var many pace
	perSecond := map[time.Duration]int{}
	for range 100_000 {
		d := many.wait(now)
		if d < leastWait || d > longestWait {
			t.Fatalf("one of many waits %v", d)
		}
		perSecond[d/time.Second]++
	}
	for second, n := range perSecond {
		if most := 100_000 / 20; n > most {
			t.Errorf("%d come back in second %d, want at most %d", n, second, most)
		}
	}
	if d := many.wait(now.Add(time.Hour)); d > usualWait {
		t.Errorf("an hour later one waits %v", d)
	}
}

func TestTaskOfAnAbsentApplicationWaits(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		f.register("mail", answer(t, 200, nil), "t")
		f.register("shop", answer(t, 200, nil), "another")
		id := f.save("t", "{}", delaytask.WithApp("shop"))
		var task delaytask.TaskRow
		servertest.Eventually(t, "it is put back", func() bool {
			task = f.get(id)
			return task.Status == delaytask.Pending && task.Version > 1
		})
		if wait := task.Due.Sub(task.Expected); task.Attempt != 0 || wait < leastWait || len(task.Errors) > 0 {
			t.Errorf("put back for %v, in attempt %d, with %+v", wait, task.Attempt, task.Errors)
		}
		e, err := f.registry.Explain(t.Context(), &task)
		if err != nil || e.Reason != report.ReasonUnserved || e.Task.ID != id || e.Task.Body != nil {
			t.Errorf("explained as %+v, %v", e, err)
		}
		for _, word := range []string{"shop", "the tag t", "other applications"} {
			if !strings.Contains(e.Text, word) {
				t.Errorf("%q does not say %q", e.Text, word)
			}
		}
		called := make(chan *http.Request, 9)
		f.register("shop", answer(t, 200, called), "t")
		if e, err := f.registry.Explain(t.Context(), &task); err != nil || e.Reason != "" {
			t.Errorf("with a receiver it is explained as %+v, %v", e, err)
		}
		// Unless it has come back by itself, which it does within 5 s.
		_, _ = f.Reschedule(t.Context(), delaytask.ID(id), 0)
		servertest.Receive(t, called, "the call")
		if task := f.awaitStatus(id, delaytask.Completed); task.Attempt != 1 {
			t.Errorf("it took %d attempts", task.Attempt)
		}
	})
}

func TestExplainLeavesOtherTasksToTheScheduler(t *testing.T) {
	t.Parallel()
	f := start(t, dbtest.New(t, dbtest.SQLite))
	explains := func(tag string, want report.Reason, options ...delaytask.Option) {
		t.Helper()
		id, err := f.SaveDelayTask(t.Context(), tag, nil, time.Hour, options...)
		servertest.OK(t, err)
		task := f.get(id)
		e, err := f.registry.Explain(t.Context(), &task)
		if err != nil || e.Reason != want {
			t.Errorf("%s: explained as %s: %s, %v; want %q", tag, e.Reason, e.Text, err, want)
		}
		if strings.Contains(e.Text, "other applications") {
			t.Errorf("there are no others: %s", e.Text)
		}
		task.Status = delaytask.Executing
		if e, err := f.registry.Explain(t.Context(), &task); err != nil || e.Reason != "" {
			t.Errorf("%s while it runs: explained as %+v, %v", tag, e, err)
		}
	}
	explains("t", "")
	explains("t", report.ReasonUnserved, delaytask.WithApp("shop"))
	explains("t", report.ReasonUnserved, delaytask.WithApp(strings.Repeat("a", 128)))
	explains("http", "", delaytask.WithApp("shop"))
}

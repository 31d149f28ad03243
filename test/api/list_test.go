package api

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

func TestListsComePageByPage(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		items := slices.Repeat([]delaytask.Item{{Tag: "a", Body: 1, Delay: time.Hour}}, 7)
		results, err := s.SaveDelayTasks(t.Context(), append(items, delaytask.Item{Tag: "b", Delay: time.Hour}))
		servertest.OK(t, err)
		for _, bodies := range []bool{false, true} {
			filter := delaytask.Filter{
				Tag: "a", Status: delaytask.Pending, DueBefore: time.Now().Add(2 * time.Hour), Limit: 3, Bodies: bodies,
			}
			var ids []int64
			for pages := 0; pages == 0 || filter.After != ""; pages++ {
				page, err := s.List(t.Context(), filter)
				if err != nil || len(page.Tasks) != []int{3, 3, 1}[pages] {
					t.Fatalf("page %d: %d tasks, %v", pages, len(page.Tasks), err)
				}
				for _, task := range page.Tasks {
					ids = append(ids, task.ID)
					if (len(task.Body) == 1) != bodies {
						t.Errorf("the body is %q", task.Body)
					}
				}
				filter.After = page.Next
			}
			for i, id := range ids {
				if id != results[i].ID {
					t.Errorf("task %d is %d, want %d", i, id, results[i].ID)
				}
			}
		}
	})
}

func TestFailuresAreGroupedAndListedByGroup(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ended := make(chan struct{}, 3)
		start(t, s, "a", func(_ context.Context, task *delaytask.Task) error {
			defer func() { ended <- struct{}{} }()
			return processor.Permanent(fmt.Errorf("order %d is %s", task.ID, task.Body))
		})
		for _, body := range []string{"paid", "paid", "gone"} {
			_, err := s.SaveDelayTask(t.Context(), "a", body, 0)
			servertest.OK(t, err)
		}
		for range 3 {
			wait(t, ended)
		}
		var found report.Failures
		for found.Tasks < 3 { // the results are stored in a moment
			var err error
			found, err = s.Failures(t.Context(), "a")
			servertest.OK(t, err)
		}
		if len(found.Groups) != 2 || found.Groups[0].Tasks != 2 || found.Groups[0].Error != "order * is paid" ||
			found.Groups[0].ExampleID == 0 || found.More {
			t.Fatalf("got %+v", found)
		}
		page, err := s.List(t.Context(), delaytask.Filter{Tag: "a", Group: found.Groups[1].ID})
		if err != nil || len(page.Tasks) != 1 || !strings.Contains(page.Tasks[0].ErrorStack, "gone") {
			t.Errorf("of the second group there are %+v, %v", page.Tasks, err)
		}
		if none, err := s.Failures(t.Context(), "b"); err != nil || len(none.Groups) != 0 {
			t.Errorf("another tag: %+v, %v", none, err)
		}
		_, err = s.Failures(t.Context(), "a b")
		wantError(t, "a bad tag", err, delaytask.ErrInvalidTag)
	})
}

// A body may have a MiB, and a page is in memory several times while it is sent.
func TestAPageWithBodiesIsShort(t *testing.T) {
	t.Parallel()
	s, _ := embedded(t)
	const most = 100
	if _, err := s.SaveDelayTasks(t.Context(), slices.Repeat([]delaytask.Item{{Tag: "t", Body: 1}},
		most+1)); err != nil {
		t.Fatal(err)
	}
	list := func(filter delaytask.Filter, want int) (next string) {
		t.Helper()
		page, err := s.List(t.Context(), filter)
		if err != nil || len(page.Tasks) != want {
			t.Errorf("%+v: %d tasks, %v; want %d", filter, len(page.Tasks), err, want)
		}
		return page.Next
	}
	if next := list(delaytask.Filter{Limit: 1000}, most+1); next != "" {
		t.Errorf("another page after %s", next)
	}
	next := list(delaytask.Filter{Limit: 1000, Bodies: true}, most)
	if next == "" {
		t.Fatal("no other page")
	}
	list(delaytask.Filter{Limit: 1000, Bodies: true, After: next}, 1)
}

// Columns are open to plain SQL. Unknown values are left out, and a row that cannot be read is shown as broken.
func TestRowsThatWereWrittenByHandAreShown(t *testing.T) {
	t.Parallel()
	s, d := embedded(t)
	first, broken, last := save(t, s, "t", time.Hour), save(t, s, "t", time.Hour), save(t, s, "t", time.Hour)
	servertest.Exec(t, d.DSN, `UPDATE delay_task_message SET ip_address = ?, headers = '{"trace":"abc","number":7}',`+
		" start_time = '2026-05-04 12:00:00.002000', expected_time = '2026-05-04 12:00:00.000000', status = 2,"+
		` errors = '[{"n":1,"finished":"2026-05-04T12:00:00Z","executor":"e","error":"no"},7]' WHERE id = ?`, 10<<24|1,
		first)
	servertest.Exec(t, d.DSN, "UPDATE delay_task_message SET headers = 'no' WHERE id = ?", broken)

	if task := get(t, s, first); task.Status != delaytask.Failed || task.IPAddress != netip.MustParseAddr("10.0.0.1") ||
		task.Lateness() != 2*time.Millisecond || len(task.Headers) != 1 || task.Headers["trace"] != "abc" ||
		len(task.Errors) != 1 || task.Errors[0].Error != "no" {
		t.Errorf("got %+v", task)
	}
	task := get(t, s, last)
	if task.Headers != nil || task.Errors != nil || task.Lateness() != 0 || !task.Finished.IsZero() {
		t.Errorf("what is not set is %+v", task)
	}
	page, err := s.List(t.Context(), delaytask.Filter{})
	if err != nil || len(page.Tasks) != 3 {
		t.Fatalf("got %d tasks, %v", len(page.Tasks), err)
	}
	for i, id := range []int64{last, broken, first} {
		if task := page.Tasks[i]; task.ID != id || (task.Broken != "") != (id == broken) {
			t.Errorf("task %d of the list is %+v", i, task)
		}
	}
	if why, err := s.Explain(t.Context(), delaytask.ID(broken)); err != nil || why.Reason != report.ReasonBroken {
		t.Errorf("explained as %+v, %v", why, err)
	}
	_, err = s.SetBody(t.Context(), delaytask.ID(broken), nil)
	if !errors.Is(err, delaytask.ErrBroken) || !strings.Contains(err.Error(), "headers") {
		t.Errorf("a new body: %v, want %v with the column", err, delaytask.ErrBroken)
	}
}

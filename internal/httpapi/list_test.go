package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

func list(s *site, query string) wire.Page {
	s.TB.Helper()
	return ok[wire.Page](s, http.StatusOK, "GET", "/v1/tasks?"+query, "")
}

func TestPagesHoldEveryTaskOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i := range 7 {
		s.Save(`{"tag":"t","delay":"1h","body":` + strconv.Itoa(i) + `}`)
	}
	s.Save(`{"tag":"u","delay":"1h"}`)
	var seen []string
	cursor, pages := "", 0
	for ; pages == 0 || cursor != ""; pages++ {
		page := list(s, "tag=t&limit=3&bodies=true&cursor="+cursor)
		for _, task := range page.Tasks {
			seen = append(seen, string(task.Body.Body))
		}
		if cursor = page.Next; pages == 0 { // the task that the cursor stands on goes away
			ok[wire.Met](s, http.StatusOK, "DELETE", "/v1/tasks/"+page.Tasks[2].ID.String(), "")
		}
	}
	if len(seen) != 7 || seen[0] != "0" || seen[6] != "6" || pages != 3 {
		t.Errorf("%d pages held %v", pages, seen)
	}
}

func TestAListIsFiltered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	soon := s.Save(`{"tag":"t","key":"a","delay":"1h","body":1}`)
	late := s.Save(`{"tag":"t","key":"b","delay":"10h"}`)
	gone := s.Save(`{"tag":"u","key":"a","delay":"1h"}`)
	ok[wire.Met](s, http.StatusOK, "DELETE", "/v1/tasks/"+gone.ID.String(), "")
	f := func(query string, want ...wire.ID) {
		t.Helper()
		page := list(s, query)
		if len(page.Tasks) != len(want) || page.Next != "" {
			t.Errorf("%s: got %d tasks, next %q, want %v", query, len(page.Tasks), page.Next, want)
			return
		}
		for i, task := range page.Tasks {
			if task.ID != want[i] {
				t.Errorf("%s: place %d is %v, want %v", query, i, task.ID, want[i])
			}
			if task.Body.Body != nil {
				t.Errorf("%s: bodies that nobody asked for", query)
			}
		}
	}
	f("", soon.ID, late.ID, gone.ID)
	f("tag=t", soon.ID, late.ID)
	f("status=cancelled", gone.ID)
	f("tag=t&key=a", soon.ID)
	f("key=a", soon.ID, gone.ID)
	f("tag=none")
	f("tag=t&due_before="+url.QueryEscape(time.Now().Add(2*time.Hour).Format(time.RFC3339)), soon.ID)
	f("limit=0", soon.ID, late.ID, gone.ID)
	f("limit=1000000000", soon.ID, late.ID, gone.ID)
}

func TestACursorOfAnotherListIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 3 {
		s.Save(`{"tag":"t","delay":"1h"}`)
	}
	cursor := list(s, "tag=t&limit=1").Next
	if got := list(s, "tag=t&limit=2&bodies=true&cursor="+cursor); len(got.Tasks) != 2 {
		t.Errorf("another size of pages: %d tasks", len(got.Tasks))
	}
	for _, query := range []string{
		"", "tag=u&", "tag=t&status=pending&", "tag=t&key=k&", "tag=t&key=k&app=a&", "tag=t&due_before=2037-01-01T00:00:00Z&",
	} {
		s.Want(400, wire.CodeInvalidCursor, "GET", "/v1/tasks?"+query+"cursor="+cursor, "")
	}
}

func TestPagesEndAt16MiBAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var want []wire.ID
	put := func(bytes int) {
		id, err := s.scheduler.SaveDelayTask(t.Context(), "t", "x", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		servertest.Exec(t, s.dsn, "UPDATE delay_task_message SET message_body = ? WHERE id = ?", strings.Repeat("b", bytes), id)
		want = append(want, wire.ID(id))
	}
	for range 5 {
		put(6 << 20)
	}
	put(20 << 20)
	put(1)
	var seen []wire.ID
	var pages []int
	for cursor := ""; len(pages) == 0 || cursor != ""; {
		page := list(s, "tag=t&bodies=true&cursor="+cursor)
		for _, task := range page.Tasks {
			seen = append(seen, task.ID)
			if task.BodyText == nil {
				t.Fatalf("task %v has no body", task.ID)
			}
		}
		pages, cursor = append(pages, len(page.Tasks)), page.Next
	}
	if !slices.Equal(seen, want) || !slices.Equal(pages, []int{2, 2, 1, 1, 1}) {
		t.Errorf("pages of %v hold %v, want %v", pages, seen, want)
	}
	if page := list(s, "tag=t"); len(page.Tasks) != 7 || page.Next != "" {
		t.Errorf("without bodies: %d tasks, next %q", len(page.Tasks), page.Next)
	}
}

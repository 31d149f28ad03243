package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
)

func list(s *site, query string) wire.Page {
	s.t.Helper()
	return ok[wire.Page](s, http.StatusOK, "GET", "/v1/tasks?"+query, "")
}

func TestPagesHoldEveryTaskOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i := range 7 {
		s.save(`{"tag":"t","delay":"1h","body":` + strconv.Itoa(i) + `}`)
	}
	s.save(`{"tag":"u","delay":"1h"}`)
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
	soon := s.save(`{"tag":"t","key":"a","delay":"1h","body":1}`)
	late := s.save(`{"tag":"t","key":"b","delay":"10h"}`)
	gone := s.save(`{"tag":"u","key":"a","delay":"1h"}`)
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
		s.save(`{"tag":"t","delay":"1h"}`)
	}
	cursor := list(s, "tag=t&limit=1").Next
	if got := list(s, "tag=t&limit=2&bodies=true&cursor="+cursor); len(got.Tasks) != 2 {
		t.Errorf("another size of pages: %d tasks", len(got.Tasks))
	}
	for _, query := range []string{"", "tag=u&", "tag=t&status=pending&", "tag=t&key=k&", "tag=t&due_before=2037-01-01T00:00:00Z&"} {
		s.refuses(400, wire.CodeInvalidCursor, "GET", "/v1/tasks?"+query+"cursor="+cursor, "")
	}
	for i := range cursor { // one bit of each sign
		tampered := []byte(cursor)
		if tampered[i] ^= 1; string(tampered) == cursor {
			continue
		}
		s.refuses(400, wire.CodeInvalidCursor, "GET", "/v1/tasks?tag=t&cursor="+url.QueryEscape(string(tampered)), "")
	}
}

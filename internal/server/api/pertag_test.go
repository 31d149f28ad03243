package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// Pages of every length have each tag once, in its order.
func TestStatisticsComeByPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tags := []string{"a", "a.b", "c", "d", "d/e"}
	s.saveAll(tags, time.Hour)
	for limit := 0; limit <= 6; limit++ {
		var seen []string
		pages := 0
		for after := ""; pages == 0 || after != ""; pages++ {
			path := fmt.Sprintf("/v1/stats?limit=%d&after=%s", limit, url.QueryEscape(after))
			page := ok[wire.Stats](s, 200, "GET", path, "")
			for _, tag := range page.Tags {
				seen = append(seen, tag.Tag)
			}
			after = page.Next
		}
		want := []int{1, 5, 3, 2, 2, 1, 1}[limit]
		if !slices.Equal(seen, tags) || pages != want {
			t.Errorf("limit %d: %d pages have %q", limit, pages, seen)
		}
	}
	if page := ok[wire.Stats](s, 200, "GET", "/v1/stats?after=z", ""); len(page.Tags) != 0 || page.Next != "" {
		t.Errorf("behind the last: %+v", page)
	}
	for _, path := range []string{"/v1/stats", "/v1/overview"} {
		s.Want(400, "invalid_option", "GET", path+"?limit=-1", "")
		s.Want(400, "invalid_parameter", "GET", path+"?limit=many", "")
	}
}

func TestAnOverviewHasTheTagsThatAreOverdueForLongest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.saveAll([]string{"a", "b"}, time.Hour)
	s.saveAll([]string{"late.1", "late.2", "late.3"}, -time.Hour)
	found := ok[wire.Overview](s, 200, "GET", "/v1/overview?limit=2", "")
	tags := make([]string, len(found.Tags))
	for i, tag := range found.Tags {
		tags[i] = tag.Tag
	}
	if len(tags) != 2 || !strings.HasPrefix(tags[0], "late") || !strings.HasPrefix(tags[1], "late") ||
		found.MoreTags != 3 || found.Totals.Overdue.Tasks != 3 {
		t.Errorf("got %q and %d more, with %+v", tags, found.MoreTags, found.Totals)
	}
	if found := ok[wire.Overview](s, 200, "GET", "/v1/overview", ""); len(found.Tags) != 5 || found.MoreTags != 0 {
		t.Errorf("without a limit: %d tags and %d more", len(found.Tags), found.MoreTags)
	}
}

// saveAll saves a task of each tag.
func (s *site) saveAll(tags []string, delay time.Duration) {
	s.TB.Helper()
	for _, tag := range tags {
		_, err := s.scheduler.SaveDelayTask(s.TB.Context(), tag, "x", 0, delaytask.WithTime(time.Now().Add(delay)))
		servertest.OK(s.TB, err)
	}
}

package httpapi

import (
	"net/http"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestATagIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	paused := func() bool {
		t.Helper()
		for _, tag := range ok[wire.TagList](s, http.StatusOK, "GET", "/v1/tags", "").Tags {
			if tag.Tag == "a/b" {
				return tag.Paused
			}
		}
		return false
	}
	s.Want(204, "", "POST", "/v1/tags/a%2Fb/pause", "")
	s.Want(204, "", "POST", "/v1/tags/a%2Fb/pause", "")
	if !paused() {
		t.Error("it is not paused")
	}
	saved := s.Save(`{"tag":"a/b"}`)
	s.Want(204, "", "POST", "/v1/tags/a%2Fb/pop", "")
	if e := ok[wire.Explanation](s, http.StatusOK, "GET", "/v1/tasks/"+saved.ID.String()+"/explain", ""); e.Reason != "paused" {
		t.Errorf("explained as %s", e.Reason)
	}
	s.Want(204, "", "POST", "/v1/tags/a%2Fb/resume", "")
	if got := s.Pop("a%2Fb", ""); got.ID != saved.ID || paused() {
		t.Errorf("popped %+v", got)
	}
	s.Want(400, wire.CodeInvalidTag, "POST", "/v1/tags/%20/pause", "")
	s.Want(400, wire.CodeInvalidTag, "POST", "/v1/tags/%20/resume", "")
}

func TestCountsAndLatenessAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	empty := ok[wire.TagLateness](s, http.StatusOK, "GET", "/v1/tags/t/lateness", "")
	if empty.Lateness != nil || empty.WindowMS != 3_600_000 || empty.Tag != "t" {
		t.Errorf("got %+v", empty)
	}
	s.Save(`{"tag":"t"}`)
	s.end(s.Pop("t", ""), "finish", "")
	s.Save(`{"tag":"t","delay":"1h"}`)
	late := ok[wire.TagLateness](s, http.StatusOK, "GET", "/v1/tags/t/lateness?window=365d", "")
	if late.Lateness == nil || late.Lateness.Samples != 1 || late.WindowMS != 7*24*3_600_000 {
		t.Errorf("got %+v", late)
	}
	stats := ok[wire.Stats](s, http.StatusOK, "GET", "/v1/stats", "")
	if len(stats.Tags) != 1 || stats.Tags[0].Counts["completed"] != 1 || stats.Tags[0].Counts["pending"] != 1 {
		t.Errorf("got %+v", stats)
	}
	nodes := ok[wire.NodeList](s, http.StatusOK, "GET", "/v1/nodes", "")
	if len(nodes.Nodes) != 1 || nodes.Nodes[0].State != "alive" || nodes.Nodes[0].PID == 0 {
		t.Errorf("got %+v", nodes)
	}
	s.Want(400, wire.CodeInvalidTag, "GET", "/v1/tags/%20/lateness", "")
}

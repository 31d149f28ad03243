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
	s.done("POST", "/v1/tags/a%2Fb/pause", "")
	s.done("POST", "/v1/tags/a%2Fb/pause", "")
	if !paused() {
		t.Error("it is not paused")
	}
	saved := s.save(`{"tag":"a/b"}`)
	s.done("POST", "/v1/tags/a%2Fb/pop", "")
	if e := ok[wire.Explanation](s, http.StatusOK, "GET", "/v1/tasks/"+saved.ID.String()+"/explain", ""); e.Reason != "paused" {
		t.Errorf("explained as %s", e.Reason)
	}
	s.done("POST", "/v1/tags/a%2Fb/resume", "")
	if got := s.popOne("a%2Fb", ""); got.ID != saved.ID || paused() {
		t.Errorf("popped %+v", got)
	}
	s.refuses(400, wire.CodeInvalidTag, "POST", "/v1/tags/%20/pause", "")
	s.refuses(400, wire.CodeInvalidTag, "POST", "/v1/tags/%20/resume", "")
}

func TestCountsAndLatenessAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	empty := ok[wire.TagLateness](s, http.StatusOK, "GET", "/v1/tags/t/lateness", "")
	if empty.Lateness != nil || empty.WindowMS != 3_600_000 || empty.Tag != "t" {
		t.Errorf("got %+v", empty)
	}
	s.save(`{"tag":"t"}`)
	s.done2(call(s.popOne("t", ""), "finish", ""))
	s.save(`{"tag":"t","delay":"1h"}`)
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
	s.refuses(400, wire.CodeInvalidTag, "GET", "/v1/tags/%20/lateness", "")
}

func TestTheServiceSaysThatItLives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := s.send("GET", path, ""); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
	}
}

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/inbound"
	"github.com/delaytask/delaytask/internal/wire"
)

func pop(s *site, path string) wire.PopReply {
	s.t.Helper()
	return ok[wire.PopReply](s, http.StatusOK, "POST", path, "")
}

func TestAPopHandsOutWhatIsDue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.save(`{"tag":"t","key":"k","app":"shop","priority":3,"headers":{"a":"b"},"body":{"n":1},"delay":"50ms"}`)
	got := s.popOne("t", "")
	if got.ID != saved.ID || got.Tag != "t" || got.Key != "k" || got.Attempt != 1 || got.Priority != 3 || string(got.Body.Body) != `{"n":1}` ||
		len(got.Headers) != 1 || got.Headers["a"] != "b" || got.Expected != saved.Expected || got.Token == "" {
		t.Errorf("popped %+v of %+v", got, saved)
	}
	s.done("POST", "/v1/tags/t/pop", "")
	s.done("POST", "/v1/tags/t/pop?wait=0", "{}") // as some clients send with every POST
	s.done("POST", "/v1/tags/t/pop?wait=1ms&ttr=0&max=1000000000", "")
}

func TestAPopTakesAsManyAsAreAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 5 {
		s.save(`{"tag":"t"}`)
	}
	seen := map[wire.ID]bool{}
	for _, most := range []int{1, 3, 1_000_000} {
		popped := pop(s, fmt.Sprintf("/v1/tags/t/pop?wait=20s&max=%d", most))
		if len(popped.Tasks) > most {
			t.Errorf("asked for %d, got %d", most, len(popped.Tasks))
		}
		for _, task := range popped.Tasks {
			seen[task.ID] = true
		}
	}
	for len(seen) < 5 {
		seen[s.popOne("t", "&max=1").ID] = true
	}
}

func TestAPopOfSeveralTags(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.save(`{"tag":"a"}`)
	s.save(`{"tag":"b/c"}`)
	s.save(`{"tag":"d"}`)
	var tags []string
	for len(tags) < 2 {
		for _, task := range pop(s, "/v1/pop?tag=a&tag=b%2Fc&max=2&wait=20s").Tasks {
			tags = append(tags, task.Tag)
		}
	}
	if slices.Sort(tags); !slices.Equal(tags, []string{"a", "b/c"}) {
		t.Errorf("popped %v", tags)
	}
	s.refuses(400, wire.CodeInvalidTag, "POST", "/v1/pop?tag=a&tag=%20", "")
	s.refuses(400, wire.CodeInvalidTag, "POST", "/v1/pop?wait=1s", "")
}

func TestAPopWaitsForATask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	popped := make(chan wire.PopReply, 1)
	go func() { popped <- pop(s, "/v1/tags/t/pop?wait=1h") }() // clamped
	s.awaitServed("t")
	saved := s.save(`{"tag":"t","delay":"20ms"}`)
	if got := <-popped; len(got.Tasks) != 1 || got.Tasks[0].ID != saved.ID {
		t.Errorf("popped %+v", got)
	}
}

func TestAServiceThatStopsAnswersThoseWhoWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	answered := make(chan reply, 1)
	go func() { answered <- s.send("POST", "/v1/tags/t/pop?wait=50s", "") }()
	s.awaitServed("t")
	s.stop()
	if got := <-answered; got.status != http.StatusNoContent {
		t.Errorf("got %d %s", got.status, got.text)
	}
	s.done("POST", "/v1/tags/t/pop?wait=50s", "")
	s.refuses(503, wire.CodeStopping, "GET", "/readyz", "")
}

func TestWhoHangsUpGivesItsTasksBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := httptest.NewServer(s.api)
	defer server.Close()
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/tags/t/pop?wait=50s", nil)
		if err != nil {
			t.Error(err)
			return
		}
		if res, err := server.Client().Do(r); err == nil {
			_ = res.Body.Close()
			t.Error("a pop that was hung up got an answer")
		}
	}()
	s.awaitServed("t")
	hangUp()
	<-ended
	server.Close() // waits until the handler has returned
	saved := s.save(`{"tag":"t"}`)
	if got := s.popOne("t", ""); got.ID != saved.ID || got.Attempt != 1 {
		t.Errorf("popped %+v", got)
	}
	if text := s.logged.String(); text != "" {
		t.Errorf("a caller that hangs up is logged: %s", text)
	}
}

func TestATaskThatNobodyReceivesIsReleased(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.save(`{"tag":"t"}`)
	popped, err := s.scheduler.Pop(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	inbound.GiveBack(s.api.log, s.scheduler, popped)
	if task, err := s.scheduler.Get(t.Context(), delaytask.ID(popped[0].ID)); err != nil || !task.Started.IsZero() {
		t.Errorf("nobody was handed it, and it started at %v: %v", task.Started, err)
	}
	if got := s.popOne("t", ""); got.ID != wire.ID(popped[0].ID) || got.Attempt != 1 {
		t.Errorf("popped %+v", got)
	}
}

// awaitServed waits until somebody pops from the tag.
func (s *site) awaitServed(tag string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		nodes, err := s.scheduler.Nodes(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if slices.ContainsFunc(nodes, func(n delaytask.Node) bool { return slices.Contains(n.Tags, tag) }) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("nobody serves %s", tag)
		}
	}
}

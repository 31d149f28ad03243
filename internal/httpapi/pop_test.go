package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func pop(s *site, path string) wire.PopReply {
	s.TB.Helper()
	return ok[wire.PopReply](s, http.StatusOK, "POST", path, "")
}

func TestAPopHandsOutWhatIsDue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.Save(`{"tag":"t","key":"k","app":"shop","priority":3,"headers":{"a":"b"},"body":{"n":1},"delay":"50ms"}`)
	got := s.Pop("t", "")
	if got.ID != saved.ID || got.Tag != "t" || got.Key != "k" || got.Attempt != 1 || got.Priority != 3 || string(got.Body.Body) != `{"n":1}` ||
		len(got.Headers) != 1 || got.Headers["a"] != "b" || got.Expected != saved.Expected || got.Token == "" {
		t.Errorf("popped %+v of %+v", got, saved)
	}
	s.Want(204, "", "POST", "/v1/tags/t/pop", "")
	s.Want(204, "", "POST", "/v1/tags/t/pop?wait=0", "{}") // as some clients send with every POST
	s.Want(204, "", "POST", "/v1/tags/t/pop?wait=1ms&ttr=0&max=1000000000", "")
}

func TestAPopTakesAsManyAsAreAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 5 {
		s.Save(`{"tag":"t"}`)
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
		seen[s.Pop("t", "&max=1").ID] = true
	}
}

func TestAPopOfSeveralTags(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"a"}`)
	s.Save(`{"tag":"b/c"}`)
	s.Save(`{"tag":"d"}`)
	var tags []string
	for len(tags) < 2 {
		for _, task := range pop(s, "/v1/pop?tag=a&tag=b%2Fc&max=2&wait=20s").Tasks {
			tags = append(tags, task.Tag)
		}
	}
	if slices.Sort(tags); !slices.Equal(tags, []string{"a", "b/c"}) {
		t.Errorf("popped %v", tags)
	}
	s.Want(400, wire.CodeInvalidTag, "POST", "/v1/pop?tag=a&tag=%20", "")
	s.Want(400, wire.CodeInvalidTag, "POST", "/v1/pop?wait=1s", "")
}

func TestAPopWaitsForATask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	popped := make(chan wire.PopReply, 1)
	go func() { popped <- pop(s, "/v1/tags/t/pop?wait=1h") }() // clamped
	s.AwaitServed("t")
	saved := s.Save(`{"tag":"t","delay":"20ms"}`)
	if got := <-popped; len(got.Tasks) != 1 || got.Tasks[0].ID != saved.ID {
		t.Errorf("popped %+v", got)
	}
}

package api

import (
	"net/http"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// The reads of a viewer are under way, and do not end.
func TestAViewerLeavesTurnsToOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	viewer, other := s.token("viewer", "*", access.All), s.token("other", "*", access.All)
	s.api.rooms.Wait = 0
	for range 4 {
		_, err := s.api.rooms.Reads.Enter(t.Context(), "token viewer", 1, 0, nil)
		servertest.OK(t, err)
	}
	reads := []string{"/v1/stats", "/v1/tasks", "/v1/failures", "/v1/overview", "/v1/nodes", "/v1/audit"}
	for _, path := range reads {
		refused := s.Want(429, wire.CodeTooManyRequests, "GET", path, "", viewer...)
		if refused.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
		s.Want(http.StatusOK, "", "GET", path, "", other...)
	}
	s.Want(429, wire.CodeTooManyRequests, "POST", bulkPath, `{"action":"retry","all":true,"dry_run":true}`, viewer...)
	s.Want(http.StatusCreated, "", "POST", "/v1/tasks", `{"tag":"t"}`, viewer...)
}

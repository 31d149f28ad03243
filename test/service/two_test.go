package service

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
)

// servers is each without SQLite, which is one server's own.
func servers(t *testing.T, f func(t *testing.T, db dbtest.Database)) {
	t.Helper()
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		f(t, db)
	})
}

func TestTwoServersShareADatabase(t *testing.T) {
	servers(t, func(t *testing.T, db dbtest.Database) {
		a, b := serve(t, db), serve(t, db)
		saved := a.save(`{"tag":"t","body":1,"delay":"100ms"}`)
		task := b.pop("/v1/tags/t/pop?wait=30s")[0]
		if task.ID != saved.ID {
			t.Errorf("popped %s, saved %s", task.ID, saved.ID)
		}
		a.finish(task).wants(t, 204, "")
		b.finish(task).wants(t, 409, "lease_lost")

		a.call("POST", "/v1/tags/t/pause", "").wants(t, 204, "")
		paused := time.Now()
		for _, s := range []*server{a, b} {
			eventually(t, "the pause holds", func() bool {
				s.save(`{"tag":"t"}`)
				got := s.call("POST", "/v1/tags/t/pop?wait=1s&max=1000", "")
				return got.status == 204
			})
		}
		t.Logf("the pause held on both within %v, of which 2 s were waits", time.Since(paused))
		b.call("POST", "/v1/tags/t/resume", "").wants(t, 204, "")
		for _, s := range []*server{a, b} {
			s.save(`{"tag":"t"}`)
			s.finish(s.pop("/v1/tags/t/pop?wait=30s")[0]).wants(t, 204, "")
		}
	})
}

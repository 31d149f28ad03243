package service

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestTwoServersShareADatabase(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) { // a file of SQLite is one server's own
		t.Parallel()
		a, b := serve(t, db), serve(t, db)
		saved := a.Save(`{"tag":"t","body":1,"delay":"100ms"}`)
		task := b.Pop("t", "")
		if task.ID != saved.ID {
			t.Errorf("popped %s, saved %s", task.ID, saved.ID)
		}
		a.finish(204, "", task)
		b.finish(409, wire.CodeLeaseLost, task)

		a.Want(204, "", "POST", "/v1/tags/t/pause", "")
		paused := time.Now()
		for _, s := range []*server{a, b} {
			servertest.Eventually(t, "the pause holds", func() bool {
				s.Save(`{"tag":"t"}`)
				return s.Call("POST", "/v1/tags/t/pop?wait=1s&max=1000", "").Status == 204
			})
		}
		t.Logf("the pause held on both within %v, of which 2 s were waits", time.Since(paused))
		b.Want(204, "", "POST", "/v1/tags/t/resume", "")
		for _, s := range []*server{a, b} {
			s.Save(`{"tag":"t"}`)
			s.finish(204, "", s.Pop("t", ""))
		}
	})
}

package service

import (
	"encoding/json"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestTheDatabaseIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	f := func(t *testing.T, kind dbtest.Kind) {
		t.Parallel()
		mortal := dbtest.NewMortal(t, kind)
		s := serve(t, mortal.Database(t))
		waiting := make(chan answer, 1)
		go func() {
			a, err := s.try("POST", "/v1/tags/t/pop?wait=55s", "")
			if err != nil {
				t.Error(err)
			}
			waiting <- a
		}()
		s.awaits("t")
		s.call("GET", "/readyz", "").wants(t, 200, "")

		mortal.Kill(t)
		s.call("GET", "/readyz", "").wants(t, 503, wire.CodeNotReady)
		s.call("GET", "/healthz", "").wants(t, 200, "")
		refused := s.call("POST", "/v1/tasks", `{"tag":"other","key":"k"}`)
		var p wire.Problem
		if err := json.Unmarshal([]byte(refused.text), &p); err != nil || refused.status != 503 {
			t.Fatalf("a save without a database: %+v, %v", refused, err)
		}
		t.Logf("a save without a database is %s: %s", p.Code, p.Detail)

		mortal.Start(t)
		eventually(t, "the server is ready again", func() bool { return s.call("GET", "/readyz", "").status == 200 })
		if p.Code == wire.CodeOutcomeUnknown {
			again := s.call("POST", "/v1/tasks", `{"tag":"other","key":"k","id":"`+p.TaskID.String()+`"}`)
			if saved := as[wire.Saved](t, again, 201); saved.ID != p.TaskID {
				t.Errorf("saved again as %s, want %s", saved.ID, p.TaskID)
			}
		} else {
			s.call("GET", "/v1/tags/other/keys/k", "").wants(t, 404, wire.CodeNotFound)
		}
		saved := s.save(`{"tag":"t"}`)
		task := as[wire.PopReply](t, receive(t, waiting, "the pop that waited all the time gets it"), 200).Tasks[0]
		if task.ID != saved.ID {
			t.Errorf("popped %s, saved %s", task.ID, saved.ID)
		}
		s.finish(task).wants(t, 204, "")
	}
	t.Run("mariadb", func(t *testing.T) { f(t, dbtest.MariaDB) })
	t.Run("mysql", func(t *testing.T) { f(t, dbtest.MySQL) })
}

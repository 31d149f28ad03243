package service

import (
	"database/sql"
	"encoding/json"
	"strings"
	"sync"
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

func TestAFailureDoesNotLookAsIfNothingWereDue(t *testing.T) {
	t.Parallel()
	for _, kind := range []dbtest.Kind{dbtest.SQLite, dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			if kind == dbtest.SQLite {
				db := dbtest.New(t, kind)
				s := serve(t, db)
				s.failsWhile(t, "the table is gone", renamed(t, db), renamedBack(t, db))
				return
			}
			mortal := dbtest.NewMortal(t, kind)
			db := mortal.Database(t)
			s := serve(t, db)
			s.failsWhile(t, "the table is gone", renamed(t, db), renamedBack(t, db))
			s.failsWhile(t, "the server hangs", func() { mortal.Freeze(t) }, func() { mortal.Thaw(t) })
			s.failsWhile(t, "the server is gone", func() { mortal.Kill(t) }, func() { mortal.Start(t) })
		})
	}
}

// failsWhile wants that no pop says that nothing is due between the two, and that the service is not ready.
func (s *server) failsWhile(t *testing.T, what string, begin, end func()) {
	t.Helper()
	ready := func() bool { return s.call("GET", "/readyz", "").status == 200 }
	pops := []func(wait string) (answer, error){
		func(wait string) (answer, error) { return s.try("POST", "/v1/tags/t/pop?wait="+wait+"s", "") },
		func(wait string) (answer, error) { return s.try("POST", "/v1/pop?tag=t&tag=u&wait="+wait+"s", "") },
		func(wait string) (answer, error) { return s.try("GET", "/o/get?topic=t&wait="+wait+"000", "") },
		func(wait string) (answer, error) {
			return s.try("POST", "/compat/topics", `{"command":"pop","topic":"t","wait":`+wait+`}`)
		},
	}
	eventually(t, "it is ready before "+what, ready)
	waiting := make(chan answer, 1)
	go func() {
		a, err := pops[0]("5")
		if err != nil {
			t.Error(err)
		}
		waiting <- a
	}()
	s.awaits("t")

	begin()
	var all sync.WaitGroup
	for i, pop := range pops {
		for _, wait := range []string{"0", "1"} {
			all.Go(func() {
				a, err := pop(wait)
				old := strings.Contains(a.text, `"success":false`)
				if err != nil || a.status != 503 || a.header.Get("Retry-After") == "" || old != (i > 1) {
					t.Errorf("%s: pop %d that waits %s s is answered %+v, %v", what, i, wait, a, err)
				}
			})
		}
	}
	all.Wait()
	if a := <-waiting; a.status != 503 {
		t.Errorf("%s: a pop that waited before is answered %d %s", what, a.status, a.text)
	}
	s.call("GET", "/readyz", "").wants(t, 503, wire.CodeNotReady)
	s.call("GET", "/healthz", "").wants(t, 200, "")

	end()
	eventually(t, "it is ready after "+what, ready)
	eventually(t, "pops work after "+what, func() bool {
		a, err := pops[0]("0")
		return err == nil && a.status == 204
	})
}

func renamed(t *testing.T, db dbtest.Database) func() {
	return rename(t, db, "delay_task_message", "hidden")
}

func renamedBack(t *testing.T, db dbtest.Database) func() {
	return rename(t, db, "hidden", "delay_task_message")
}

func rename(t *testing.T, db dbtest.Database, from, to string) func() {
	return func() {
		t.Helper()
		execute(t, db, "ALTER TABLE "+from+" RENAME TO "+to)
	}
}

// execute changes the database as somebody with a client would.
func execute(t *testing.T, db dbtest.Database, statement string) {
	t.Helper()
	driver, dsn := "mysql", db.DSN
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(10000)"
	}
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

package service

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// onDisposableServers runs f with servers of databases that it may hurt.
func onDisposableServers(t *testing.T, f func(t *testing.T, server dbtest.Disposable, db dbtest.Database)) {
	t.Helper()
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := dbtest.NewDisposable(t, kind)
			f(t, server, server.Database(t))
		})
	}
}

// waits begins a pop and returns its answer to come.
func (s *server) waits(wait string) <-chan servertest.Answer {
	s.TB.Helper()
	waiting := make(chan servertest.Answer, 1)
	go func() {
		a, err := s.Try("POST", "/v1/tags/t/pop?wait="+wait, "")
		if err != nil {
			s.TB.Error(err)
		}
		waiting <- a
	}()
	s.AwaitServed("t")
	s.Want(204, "", "POST", "/v1/tags/t/pop?wait=0", "") // the first database read has been answered then
	return waiting
}

func TestTheDatabaseIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	onDisposableServers(t, func(t *testing.T, server dbtest.Disposable, db dbtest.Database) {
		s := serve(t, db)
		waiting := s.waits("55s")
		server.Kill(t)
		refused := s.Call("POST", "/v1/tasks", `{"tag":"other","key":"k"}`)
		if refused.Status != 503 {
			t.Fatalf("a save without a database: %d %s", refused.Status, refused.Text)
		}
		if refused.Code != wire.CodeNotStored || strings.Contains(refused.Text, "127.0.0.1") {
			t.Errorf("a save without a database is %s: %s", refused.Code, refused.Text)
		}
		again := s.Call("POST", "/v1/tasks", `{"tag":"other","key":"k","id":"`+wire.ID(delaytask.NewID()).String()+`"}`)
		if again.Code != wire.CodeOutcomeUnknown || !strings.Contains(again.Text, `"not_stored":true`) {
			t.Errorf("a save under an id without a database: %s", again.Text)
		}

		server.Start(t)
		s.becomes(200, "GET", "/readyz")
		if refused.Code == wire.CodeOutcomeUnknown {
			if saved := s.Save(`{"tag":"other","key":"k","id":"` + refused.TaskID.String() +
				`"}`); saved.ID != refused.TaskID {
				t.Errorf("saved again as %s, want %s", saved.ID, refused.TaskID)
			}
		} else {
			s.Want(404, wire.CodeNotFound, "GET", "/v1/tags/other/keys/k", "")
		}
		saved := s.Save(`{"tag":"t"}`)
		var got wire.PopReply
		servertest.Receive(t, waiting, "the pop that waited all the time gets it").Read(t, &got)
		if len(got.Tasks) != 1 || got.Tasks[0].ID != saved.ID {
			t.Fatalf("popped %+v, saved %s", got, saved.ID)
		}
		s.finish(204, "", got.Tasks[0])
	})
}

func TestAServiceWhoseFileWasDeletedAcceptsNothing(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db)
	s.becomes(200, "GET", "/readyz")
	servertest.OK(t, os.Remove(strings.TrimPrefix(db.DSN, "sqlite:")))
	a := s.Call("POST", "/v1/tasks", `{"tag":"t"}`)
	if a.Status != 503 || a.Code != wire.CodeFileReplaced || strings.Contains(a.Text, ".db") {
		t.Errorf("a save: %d %s", a.Status, a.Text)
	}
	s.Want(503, wire.CodeNotReady, "GET", "/readyz", "")
}

func TestAFailureDoesNotLookAsIfNothingWereDue(t *testing.T) {
	t.Parallel()
	t.Run(string(dbtest.SQLite), func(t *testing.T) {
		t.Parallel()
		db := dbtest.New(t, dbtest.SQLite)
		serve(t, db).failsWithoutTable(t, db)
	})
	onDisposableServers(t, func(t *testing.T, server dbtest.Disposable, db dbtest.Database) {
		s := serve(t, db)
		s.failsWithoutTable(t, db)
		s.failsWhile(t, "the server hangs", func() { server.Freeze(t) }, func() { server.Thaw(t) })
		s.failsWhile(t, "the server is gone", func() { server.Kill(t) }, func() { server.Start(t) })
	})
}

func (s *server) failsWithoutTable(t *testing.T, db dbtest.Database) {
	t.Helper()
	rename := func(from, to string) func() {
		return func() { servertest.Exec(t, db.DSN, "ALTER TABLE "+from+" RENAME TO "+to) }
	}
	s.failsWhile(t, "the table is gone", rename("delay_task_message", "hidden"), rename("hidden", "delay_task_message"))
}

// failsWhile requires that no pop answers 204 between the two, and that the service is not ready.
func (s *server) failsWhile(t *testing.T, what string, begin, end func()) {
	t.Helper()
	s.becomes(200, "GET", "/readyz")
	waiting := s.waits("5s")
	begin()
	var all sync.WaitGroup
	for _, pop := range [][3]string{
		{"POST", "/v1/tags/t/pop?wait=WAITs"}, {"POST", "/v1/pop?tag=t&tag=u&wait=WAITs"},
		{"GET", "/o/get?topic=t&wait=WAIT000"},
		{"POST", "/compat/topics", `{"command":"pop","topic":"t","wait":WAIT}`},
	} {
		for _, wait := range []string{"0", "1"} {
			all.Go(func() {
				a, err := s.Try(pop[0], strings.ReplaceAll(pop[1], "WAIT", wait),
					strings.ReplaceAll(pop[2], "WAIT", wait))
				old := strings.Contains(a.Text, `"success":false`)
				if err != nil || a.Status != 503 || a.Header.Get("Retry-After") == "" ||
					old == strings.HasPrefix(pop[1], "/v1") {
					t.Errorf("%s: %s that waits %s s is answered %d %s, %v", what, pop[1], wait, a.Status, a.Text, err)
				}
			})
		}
	}
	all.Wait()
	if a := <-waiting; a.Status != 503 {
		t.Errorf("%s: a pop that waited before is answered %d %s", what, a.Status, a.Text)
	}
	s.Want(503, wire.CodeNotReady, "GET", "/readyz", "")
	s.Want(200, "", "GET", "/healthz", "")
	end()
	s.becomes(200, "GET", "/readyz")
	s.becomes(204, "POST", "/v1/tags/t/pop?wait=0s")
}

package store_test

import (
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

func TestCheckServiceAcceptsAMigratedDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		exec(t, pool.DB, "ALTER TABLE delay_task_worker ADD COLUMN customer VARCHAR(20) NULL")
		if err := s.CheckService(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCheckServiceSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	f := func(d dbtest.Database, change string, want ...string) {
		t.Helper()
		s, pool := open(t, dbtest.New(t, d.Kind))
		exec(t, pool.DB, change)
		if _, err := s.Check(t.Context(), bodyLimit); err != nil {
			t.Errorf("%s: tasks cannot run without the service: %v", change, err)
		}
		refusedService(t, s, want...)
	}
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		for _, table := range []string{"delay_task_request", "delay_task_token", "delay_task_worker"} {
			f(d, "DROP TABLE "+table, table, "missing", "delaytask migrate up")
		}
		f(d, "ALTER TABLE delay_task_worker DROP COLUMN secret", "lacks", "secret", "delaytask migrate up")
	})
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		f(d, "ALTER TABLE delay_task_token ADD COLUMN owner INT NOT NULL", "delay_task_token.owner", "default")
		if d.Kind != dbtest.Group { // which takes no write to such a table
			f(d, "ALTER TABLE delay_task_request ENGINE=MyISAM", "MyISAM", "ENGINE=InnoDB")
		}
		f(d, "ALTER TABLE delay_task_token MODIFY name VARCHAR(128) COLLATE utf8mb4_general_ci NOT NULL",
			"delay_task_token.name", "utf8mb4_general_ci", "run: ALTER TABLE")
		f(d, "ALTER TABLE delay_task_worker MODIFY app VARCHAR(128) COLLATE utf8mb4_general_ci NOT NULL",
			"delay_task_worker.app", "utf8mb4_general_ci", "run: ALTER TABLE")
	})
}

func TestCheckServiceNamesMissingPrivileges(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, pool := open(t, d)
		limited, _ := limitedUser(t, d, pool, "SELECT, INSERT, UPDATE")
		refusedService(t, store.New(limited, store.MySQL), "grant", "DELETE",
			"delay_task_request, delay_task_token and delay_task_worker")
	})
}

func refusedService(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	err := s.CheckService(t.Context())
	if err == nil || row.ClassOf(err) != row.ClassOperator {
		t.Errorf("error %v of class %s, want one for the operator", err, row.ClassOf(err))
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

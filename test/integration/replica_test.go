//go:build unix

package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// On a replica a process would run the tasks of the primary a second time.
func TestStartOnAReplicaIsRefusedUnlessItIsAllowed(t *testing.T) {
	for kind, change := range map[dbtest.Kind]string{
		dbtest.MariaDB: "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 9, MASTER_USER = 'x'",
		dbtest.MySQL:   "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 9, SOURCE_USER = 'x'",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			db := dbtest.NewDisposable(t, kind).Database(t)
			open(t, db, quiet)
			servertest.Exec(t, db.DSN, change)
			servertest.Exec(t, db.DSN, "START REPLICA")
			_, err := scheduler.Open(t.Context(), db.DSN, scheduler.Config{})
			if !errors.Is(err, scheduler.ErrReplica) || !strings.Contains(err.Error(), "127.0.0.1:9") {
				t.Errorf("on a replica: %v", err)
			}
			s, err := scheduler.Open(t.Context(), db.DSN, scheduler.Config{OnReplica: true})
			servertest.OK(t, err)
			servertest.OK(t, s.Stop(t.Context()))
		})
	}
}

// An account of an application may not ask whether the server is a replica.
func TestHeartbeatsTellAnAccountThatMayNotAskThatTheServerIsAReplica(t *testing.T) {
	t.Parallel()
	source, replica := dbtest.NewDisposable(t, dbtest.MySQL), dbtest.NewDisposable(t, dbtest.MySQL).Database(t)
	db := source.Database(t)
	at := parsed(t, db.DSN)
	_, port, err := net.SplitHostPort(at.Addr)
	servertest.OK(t, err)
	servertest.Exec(t, replica.DSN, "SET GLOBAL server_id = 2")
	servertest.Exec(t, replica.DSN, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = "+port+
		", SOURCE_USER = 'root', GET_SOURCE_PUBLIC_KEY = 1")
	servertest.Exec(t, replica.DSN, "START REPLICA")
	s := open(t, application(t, db), quiet)
	serve(t, s, "t", func(context.Context, *delaytask.Task) error { return nil })

	there := parsed(t, application(t, db).DSN)
	there.Addr = parsed(t, replica.DSN).Addr
	nodes := func() (n int) {
		_ = servertest.SQL(t, replica.DSN).QueryRowContext(t.Context(),
			fmt.Sprintf("SELECT COUNT(*) FROM `%s`.delay_task_node WHERE wake IS NOT NULL", there.DBName)).Scan(&n)
		return n
	}
	servertest.Eventually(t, "the heartbeat is replicated", func() bool { return nodes() == 1 })
	_, err = scheduler.Open(t.Context(), there.FormatDSN(), scheduler.Config{})
	if !errors.Is(err, scheduler.ErrReplica) || !strings.Contains(err.Error(), ":"+port+":1") {
		t.Errorf("on a replica: %v", err)
	}
	again, err := scheduler.Open(t.Context(), there.FormatDSN(), scheduler.Config{OnReplica: true})
	servertest.OK(t, err)
	servertest.OK(t, again.Stop(t.Context()))
}

// After a failover the heartbeats that name the server before are soon over.
func TestStartAfterAFailoverIsNotRefused(t *testing.T) {
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			db := dbtest.NewDisposable(t, kind).Database(t)
			app := application(t, db)
			nothing := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
			serve(t, open(t, app, quiet), "t", nothing)
			servertest.Exec(t, db.DSN, `INSERT INTO delay_task_node (number, token, tags, heartbeat, wake)
				VALUES (1023, 'a', '[]', UTC_TIMESTAMP(6), '{"token": "a", "server": "before:3306:1"}')`)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := scheduler.Open(ctx, app.DSN, scheduler.Config{})
			servertest.OK(t, err)
			servertest.OK(t, s.Stop(t.Context()))
		})
	}
}

// application returns the database as an account of an application sees it.
func application(t *testing.T, db dbtest.Database) dbtest.Database {
	t.Helper()
	cfg := parsed(t, db.DSN)
	servertest.Exec(t, db.DSN, "CREATE USER IF NOT EXISTS app@'%' IDENTIFIED BY 'app'")
	servertest.Exec(t, db.DSN, "GRANT ALL ON `"+cfg.DBName+"`.* TO app@'%'")
	cfg.User, cfg.Passwd = "app", "app"
	db.DSN = cfg.FormatDSN()
	return db
}

func parsed(t *testing.T, dsn string) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	servertest.OK(t, err)
	return cfg
}

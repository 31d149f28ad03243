//go:build unix

package integration

import (
	"errors"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
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

//go:build unix

package integration

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// Each new connection goes to the other one of two servers that know nothing of each other.
func TestTwoDatabasesAtOneAddressAreToldOf(t *testing.T) {
	t.Parallel()
	one := dbtest.New(t, dbtest.MariaDB)
	server, cfg := mysqlConfig(t, dbtest.New(t, dbtest.MySQL)), mysqlConfig(t, one)
	servers := pool(t, dbtest.Database{DSN: server.FormatDSN()})
	execute(t, servers, "CREATE DATABASE "+cfg.DBName)
	defer execute(t, servers, "DROP DATABASE "+cfg.DBName)
	server.DBName = cfg.DBName
	for _, d := range []dbtest.Database{one, {DSN: server.FormatDSN()}} {
		servertest.Stop(t, open(t, d))
	}
	cfg.Net, cfg.Addr = "members", cfg.Addr+"|"+server.Addr

	log := new(servertest.Log)
	s := open(t, dbtest.Database{DSN: cfg.FormatDSN()}, func(c *scheduler.Config) {
		c.Migrate, c.Logger = false, slog.New(slog.NewTextHandler(log, nil))
	})
	servertest.Eventually(t, "the overview tells of two databases", func() bool {
		found, err := s.Overview(t.Context())
		return err == nil && slices.ContainsFunc(found.Attention, func(f report.Finding) bool {
			return f.Code == report.FindingTwoDatabases && len(f.Evidence.Servers) == 2
		})
	})
	if got := log.String(); strings.Count(got, "level=ERROR msg=\"two databases answer at one address") != 1 {
		t.Errorf("the log does not tell of them once:\n%s", got)
	}
	servertest.Stop(t, s)
}

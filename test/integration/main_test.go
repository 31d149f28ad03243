// Package integration tests what only real databases and real processes can show, through the API that users have.
package integration

import (
	"flag"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		os.Exit(beChild(dsn))
	}
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // connections are killed here on purpose
		panic(err)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait more than they compute
		panic(err)
	}
	goleak.VerifyTestMain(watched{dbtest.WithServers(m)})
}

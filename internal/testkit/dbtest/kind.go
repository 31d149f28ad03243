package dbtest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Kind is what a server answers when asked for its version. The name of its binary tells nothing.
type Kind string

const (
	SQLite  Kind = "sqlite"
	MariaDB Kind = "mariadb"
	MySQL   Kind = "mysql"
	Galera  Kind = "galera" // a cluster of MariaDB, every member taking writes
	Group   Kind = "group"  // MySQL servers in one replication group
)

// Cluster reports whether the kind is several servers that are one database.
func (k Kind) Cluster() bool { return k == Galera || k == Group }

var everyKind = []Kind{SQLite, MariaDB, MySQL, Galera, Group}

func required(kind Kind) bool {
	return slices.Contains(strings.Split(os.Getenv("DELAYTASK_REQUIRE_DB"), ","), string(kind))
}

func missing(tb testing.TB, kind Kind, why string) {
	tb.Helper()
	if required(kind) {
		tb.Fatalf("DELAYTASK_REQUIRE_DB asks for %s, which is missing: %s", kind, why)
	}
	tb.Skipf("no %s here: %s", kind, why)
}

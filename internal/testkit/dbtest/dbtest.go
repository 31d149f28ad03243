// Package dbtest gives tests real databases: a SQLite file, and fresh databases on every kind of MySQL server it can
// find.
//
// Servers are looked for when the first test asks for one, in this order, until each kind is there:
//
//  1. DELAYTASK_TEST_DSN, a comma-separated list of go-sql-driver DSNs whose users may create databases; DSNs joined
//     by + are the members of one cluster; or "sqlite", so that no server is looked for;
//  2. a mariadbd or mysqld binary on this machine, started as a private server in a temporary folder;
//  3. Docker, when DELAYTASK_TEST_DOCKER=1 or the image is already local.
//
// A kind that is missing skips its tests, with the reason; DELAYTASK_REQUIRE_DB=mariadb,mysql turns that into a
// failure. Clusters are tested where they are named, and missed only where they are required. A test that kills its
// server, or lets it hang, takes one of its own with [NewDisposable]. With DELAYTASK_TEST_REPORT=FILE every server used
// is appended to the file, because "go test ./..." hides what packages print.
package dbtest

import (
	"fmt"
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

// Database is an empty database of one test. It is dropped when the test ends.
type Database struct {
	Kind   Kind
	DSN    string // in the form that delaytask takes; of a cluster: of one of its members in turn
	Server string // which server and version, for messages

	Members []string // of a cluster: the DSNs of all its members

	spread string
}

// Spread returns the database as behind a balancer: each new connection goes to the next member of the cluster, and
// sees what was committed on the others before. Without a cluster it returns d.
func (d Database) Spread() Database {
	if d.spread != "" {
		d.DSN = d.spread
	}
	return d
}

// Each runs f on every kind of database, each in a subtest named after it.
func Each(t *testing.T, f func(t *testing.T, db Database)) {
	t.Helper()
	onEach(t, everyKind, (*server).fresh, f)
}

// MySQLs is [Each] without SQLite. Where several servers of one kind are named, f runs on each.
func MySQLs(t *testing.T, f func(t *testing.T, db Database)) {
	t.Helper()
	onEach(t, everyKind[1:], (*server).fresh, f)
}

// New returns one database of the kind, or skips the test when there is no such server.
func New(tb testing.TB, kind Kind) Database {
	tb.Helper()
	return first(tb, kind).fresh(tb)
}

var everyKind = []Kind{SQLite, MariaDB, MySQL, Galera, Group}

func onEach(t *testing.T, kinds []Kind, take func(*server, testing.TB) Database, f func(*testing.T, Database)) {
	t.Helper()
	for _, kind := range kinds {
		servers := serversOf(kind)
		if len(servers) == 0 && (!kind.Cluster() || required(kind)) {
			t.Run(string(kind), func(t *testing.T) { missing(t, kind, found().why()) })
		}
		for _, s := range servers {
			t.Run(string(kind), func(t *testing.T) { f(t, take(s, t)) })
		}
	}
}

func first(tb testing.TB, kind Kind) *server {
	tb.Helper()
	servers := serversOf(kind)
	if len(servers) == 0 {
		missing(tb, kind, found().why())
	}
	return servers[0]
}

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

// Main runs the tests of a package, stops the servers that were started for them, and prints which servers were used.
// A package that tests on databases calls it from TestMain.
func Main(m *testing.M) { os.Exit(WithServers(m).Run()) }

// WithServers is [Main] for a TestMain that wraps the run itself, as a check for leaked goroutines does.
func WithServers(m *testing.M) Runner { return Runner{m} }

// Runner runs tests and then ends the servers.
type Runner struct{ m *testing.M }

// Run returns the exit code of the tests, or 1 when a server could not be ended or reported.
func (r Runner) Run() int {
	code := r.m.Run()
	if err := finish(); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		code = max(code, 1)
	}
	return code
}

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

import "testing"

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

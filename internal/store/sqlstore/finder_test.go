package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestLockedRowsAreFoundWithAndWithoutSkipLocked(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := migrated(t, d)
		mustExec(t, db, "INSERT INTO "+table+" (id, tag, message_body)"+
			" VALUES (1,'a',''), (2,'a',''), (3,'a',''), (4,'a',''), (5,'a','')")
		tx := db.MustBegin()
		defer tx.Rollback()
		tx.MustExec("UPDATE " + table + " SET version = 1 WHERE id = 2")
		tx.MustExec("DELETE FROM " + table + " WHERE id = 4")
		tx.MustExec("INSERT INTO " + table + " (id, tag, message_body) VALUES (6, 'a', '')")
		conn, err := db.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		want := []int64{2, 4, 6}
		type names = func(ids []int64, lock string) clause
		for name, find := range map[string]func(context.Context, *sql.Conn, []int64, names) ([]int64, error){
			"halving": lockedByHalving[int64], "skipping": lockedBySkipping[int64],
		} {
			got, err := find(t.Context(), conn, []int64{1, 2, 3, 4, 5, 6, 7}, mysqlDialect.selectByID)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("by %s: %v, %v; want %v", name, got, err, want)
			}
		}
	})
}

func TestLockedAsksForTheVersionOnce(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := migrated(t, d)
		s := New(db, MySQL)
		defer s.Close(t.Context())
		f := func(want int) {
			t.Helper()
			before := selects(t, s)
			must(t, one(s.Locked(t.Context(), []int64{1})))
			if n := selects(t, s) - before; n != want {
				t.Errorf("%d reads, want %d", n, want)
			}
		}
		f(4)
		f(3)
		mustExec(t, db, "RENAME TABLE "+table+" TO away")
		if _, err := s.Locked(t.Context(), []int64{1}); err == nil {
			t.Error("no error although the table is away")
		}
		mustExec(t, db, "RENAME TABLE away TO "+table)
		f(4) // after an error the server may be another
	})
}

// selects counts the reads of the connection for lock checks.
func selects(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.lanes[lockChecks].do(t.Context(), "count reads", func(ctx context.Context, conn *sql.Conn) error {
		var name string
		return conn.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Com_select'").Scan(&name, &n)
	})
	must(t, err)
	return n
}

func TestVersionsTellWhichServerItIs(t *testing.T) {
	f := func(in, want string, supported, skips bool) {
		t.Helper()
		number, comment, _ := strings.Cut(in, " ")
		v := parseVersion(number, comment)
		if v.String() != want || v.supported() != supported || v.skipsLocked() != skips {
			t.Errorf("%q is %s, supported %v, skips %v", in, v, v.supported(), v.skipsLocked())
		}
	}
	f("9.7.4-2", "MySQL 9.7", true, true)
	f("8.0.36", "MySQL 8.0", true, true)
	f("5.7.44-log", "MySQL 5.7", false, false)
	f("10.11.19-MariaDB-0+deb12u1", "MariaDB 10.11", true, true)
	f("5.5.5-10.6.2-MariaDB", "MariaDB 10.6", true, true)
	f("10.5.29-MariaDB", "MariaDB 10.5", false, false)
	f("8.0.11-TiDB-v8.5.0", "TiDB 8.5", true, false)
	f("8.0.31 TiDB Server (Apache License 2.0) Community Edition", "TiDB 8.0", true, false)
	f("8.4.6-Vitess", "Vitess that speaks the protocol of MySQL 8.4", true, true)
	f("8.0.31 Version: 24.0.0 (Git revision 0123456789 branch 'HEAD') built on a day",
		"Vitess that speaks the protocol of MySQL 8.0", true, true)
	f("9.7.4-2 Source distribution", "MySQL 9.7", true, true)
	f("", "MySQL 0.0", false, false)
}

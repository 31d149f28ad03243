package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// mishap is what befalls one statement of a decision.
type mishap struct {
	name   string
	strike func(on driver.Conn, send func() error) error
	class  row.Class // of the decision
	commit row.Class // of the decision, when it befalls the COMMIT
	stored bool      // the COMMIT is done all the same
	mute   bool      // the ROLLBACK after it is lost
}

func answers(number uint16, class, commit row.Class) mishap {
	return mishap{name: fmt.Sprint("error ", number), class: class, commit: commit,
		strike: func(driver.Conn, func() error) error { return &mysql.MySQLError{Number: number} }}
}

var mishaps = []mishap{
	answers(1062, row.ClassDuplicate, row.ClassDuplicate), answers(1205, row.ClassLocked, row.ClassLocked),
	answers(1213, row.ClassNotApplied, row.ClassNotApplied), answers(3101, row.ClassNotApplied, row.ClassNotApplied),
	answers(1317, row.ClassNotApplied, row.ClassUnknown),
	{"the connection is cut before it", func(on driver.Conn, _ func() error) error {
		_ = on.Close()
		return mysql.ErrInvalidConn
	}, row.ClassNotApplied, row.ClassUnknown, false, false},
	{"the connection is cut after it", func(on driver.Conn, send func() error) error {
		_ = send()
		_ = on.Close()
		return mysql.ErrInvalidConn
	}, row.ClassNotApplied, row.ClassUnknown, true, false},
	{"error 1213 and the loss of the ROLLBACK", func(driver.Conn, func() error) error {
		return &mysql.MySQLError{Number: 1213}
	}, row.ClassNotApplied, row.ClassNotApplied, false, true},
}

// misfortune lets a mishap befall the n-th statement of the next transaction.
type misfortune struct {
	mishap
	n      int
	armed  bool
	sent   int    // of the transaction
	struck string // the statement
}

func (m *misfortune) hook(statement string, on driver.Conn, send func() error) error {
	if statement == "ROLLBACK" && m.mute && m.struck != "" {
		m.mute = false
		return mysql.ErrInvalidConn
	}
	if !m.armed || statement == "ROLLBACK" || m.sent == 0 && statement != mysqlDialect.begin {
		return send()
	}
	if m.sent++; m.sent <= m.n {
		return send()
	}
	m.struck, m.armed = statement, false
	return m.strike(on, send)
}

// Each statement of a decision fails in each way. All of it or nothing is stored then, and the error says which, unless
// the reply to the COMMIT is lost.
func TestDecisionIsAllOrNothingWhicheverStatementFails(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		target, err := ParseDSN(d.DSN)
		must(t, err)
		connector, err := mysql.NewConnector(target.cfg)
		must(t, err)
		plain, _ := migrated(t, d)
		for _, m := range mishaps {
			n := 0
			for struck := ""; struck != "COMMIT"; n++ {
				struck = failsWhole(t, connector, plain, &misfortune{mishap: m, n: n})
			}
			if n < 10 {
				t.Errorf("%s has befallen %d statements", m.name, n)
			}
		}
	})
}

// failsWhole makes decisions, lets one of their statements fail, and looks at what is stored. It returns that
// statement.
func failsWhole(t *testing.T, connector driver.Connector, plain *sqlx.DB, m *misfortune) string {
	t.Helper()
	db := sqlx.NewDb(sql.OpenDB(dbtest.Intercept(connector, m.hook)), "mysql")
	defer db.Close()
	s := New(db, MySQL)
	defer func() { must(t, s.Close(t.Context())) }()
	prepare(t, s, plain)
	before := dump(t, plain)
	m.armed = true
	applied, err := s.Decide(t.Context(), decisionsOfAllKinds())
	class, stored := m.class, false
	if m.struck == "COMMIT" {
		class, stored = m.commit, m.stored
	}
	if got := row.ClassOf(err); applied || err == nil || got != class {
		t.Errorf("%s at %.40q: applied %t, %v of class %s, want %s", m.name, m.struck, applied, err, got, class)
	}
	after := dump(t, plain)
	if slices.Equal(after, before) == stored {
		t.Errorf("%s at %.40q has left\n%s\nof\n%s", m.name, m.struck, strings.Join(after, "\n"),
			strings.Join(before, "\n"))
	}
	if !stored {
		decides(t, s, decisionsOfAllKinds())
		return m.struck
	}
	again, err := s.Decide(t.Context(), decisionsOfAllKinds())
	if now := dump(t, plain); again || !slices.Equal(now, after) {
		t.Errorf("made again after a lost reply: %t, %v, and stored\n%s\nof\n%s", again, err, strings.Join(now, "\n"),
			strings.Join(after, "\n"))
	}
	return m.struck
}

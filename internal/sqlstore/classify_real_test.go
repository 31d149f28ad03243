package sqlstore

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// TestRealErrorsHaveTheirClass provokes what can be provoked, so that the numbers are the servers' and not our memory
// of them.
func TestRealErrorsHaveTheirClass(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		mustExec(t, db, "CREATE TABLE thing (id INT PRIMARY KEY, name VARCHAR(3) NOT NULL UNIQUE, CHECK (id < 1000))")
		mustExec(t, db, "INSERT INTO thing VALUES (1, 'one')")

		type provocation struct {
			name, statement string
			want            row.Class
		}
		tests := []provocation{
			{"primary key", "INSERT INTO thing VALUES (1, 'two')", row.ClassDuplicate},
			{"unique key", "INSERT INTO thing VALUES (2, 'one')", row.ClassDuplicate},
			{"null", "INSERT INTO thing VALUES (3, NULL)", row.ClassCaller},
			{"check", "INSERT INTO thing VALUES (1001, 'x')", row.ClassCaller},
			{"missing table", "INSERT INTO things VALUES (1, 'x')", row.ClassOperator},
			{"missing column", "UPDATE thing SET nam = 'x'", row.ClassOperator},
			{"syntax", "UPDATE OR ELSE", row.ClassOperator},
		}
		if kind == MySQL {
			tests = append(tests, []provocation{
				{"too long", "INSERT INTO thing VALUES (4, 'four')", row.ClassCaller},
				{"out of range", "INSERT INTO thing VALUES (-9999999999, 'x')", row.ClassCaller},
				{"wrong variable", "SET timestamp = 'never'", row.ClassOperator},
				{"bytes that are no text", "INSERT INTO thing VALUES (5, _utf8mb4 0xff)", row.ClassCaller},
				{"refused by a trigger", "SIGNAL SQLSTATE '45000'", row.ClassCaller},
			}...)
		}
		for _, tt := range tests {
			_, err := db.ExecContext(t.Context(), tt.statement)
			if got := row.ClassOf(classify(tt.name, err)); err == nil || got != tt.want {
				t.Errorf("%s: %v is %s, want %s", tt.name, err, got, tt.want)
			}
		}
	})
}

func TestBusyFileIsNotApplied(t *testing.T) {
	d := dbtest.New(t, dbtest.SQLite)
	first, _ := connect(t, d)
	second, _ := connect(t, d)
	mustExec(t, first, "CREATE TABLE thing (id INT PRIMARY KEY)")
	mustExec(t, second, "PRAGMA busy_timeout = 1")
	tx := first.MustBegin() // immediate: holds the write lock from here
	defer tx.Rollback()
	_, err := second.ExecContext(t.Context(), "INSERT INTO thing VALUES (1)")
	if got := row.ClassOf(classify("save", err)); err == nil || got != row.ClassNotApplied {
		t.Errorf("%v is %s, want not applied", err, got)
	}
}

func TestReadOnlyTransactionIsTriedAgain(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := connect(t, d)
		mustExec(t, db, "CREATE TABLE thing (id INT PRIMARY KEY)")
		tx, err := db.BeginTxx(t.Context(), &sql.TxOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(t.Context(), "INSERT INTO thing VALUES (1)")
		err = classify("save", err)
		if row.ClassOf(err) != row.ClassNotApplied || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%v is %s, want not applied with a word about read-only servers", err, row.ClassOf(err))
		}
	})
}

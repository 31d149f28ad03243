package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// The numbers are repeated here by class, so that a slip in the table is noticed.
func TestMySQLNumbersHaveTheirClass(t *testing.T) {
	want := map[row.Class][]uint16{
		row.ClassLocked: {1205, 3572},
		row.ClassNotApplied: {1213, 1020, 1040, 1203, 1226, 1047, 1290, 1792, 1836, 1412, 1615, 1637, 3032, 3101, 3796,
			4031, 8002, 8005, 8022, 8028, 9007},
		row.ClassUnknown:   {0, 1053, 1105, 1180, 1317, 1927, 1969, 3024, 65535},
		row.ClassDuplicate: {1022, 1062, 1586},
		row.ClassCaller: {1048, 1118, 1153, 1197, 1216, 1217, 1264, 1265, 1292, 1300, 1366, 1406, 1441, 1442, 1451,
			1452, 1644, 1690, 1705, 3140, 3144, 3819, 4025, 8004, 8025},
		row.ClassOperator: {1021, 1034, 1037, 1038, 1041, 1044, 1045, 1046, 1049, 1054, 1064, 1114, 1115, 1129, 1130,
			1142, 1143, 1146, 1176, 1193, 1194, 1195, 1227, 1231, 1232, 1235, 1251, 1273, 1356, 1364, 1370, 1419, 1449,
			1461, 1467, 1524, 1698, 1820, 1862, 1877, 1932, 3098, 3118, 3159, 4151},
	}
	listed := map[uint16]bool{}
	for class, numbers := range want {
		for _, number := range numbers {
			listed[number] = true
			err := classify("save", fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number}))
			if got := row.ClassOf(err); got != class {
				t.Errorf("%d is %s, want %s", number, got, class)
			}
		}
	}
	for number := range mysqlFaults {
		if !listed[number] {
			t.Errorf("%d is in the table and not in this test", number)
		}
	}
}

func TestEngineTellsADeadlockDuringCommitFromOtherErrors(t *testing.T) {
	for message, want := range map[string]row.Class{
		"Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT": row.ClassNotApplied,
		`Got error 6 "No such device or address" during COMMIT`:            row.ClassUnknown,
		"Got error 1490 during COMMIT":                                     row.ClassUnknown,
		"during COMMIT":                                                    row.ClassUnknown,
	} {
		err := classify("claim", &mysql.MySQLError{Number: 1180, Message: message})
		if got := row.ClassOf(err); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
	}
}

func TestEveryOperatorFaultSaysWhatToDo(t *testing.T) {
	check := func(name any, f fault) {
		if f.class == row.ClassOperator && f.hint == "" {
			t.Errorf("%v has no hint", name)
		}
	}
	for number, f := range mysqlFaults {
		check(number, f)
	}
	for code, f := range sqliteFaults {
		check(code, f)
	}
	for _, d := range driverFaults {
		check(d.err, d.fault)
	}
}

func TestSQLiteCodesHaveTheirClass(t *testing.T) {
	want := map[row.Class][]int{
		row.ClassNotApplied: {5, 261, 517, 773, 6, 262, 15, 17},
		row.ClassUnknown:    {10, 1034, 4874, 9, 4, 21, 999},
		row.ClassDuplicate:  {1555, 2067, 2579},
		row.ClassCaller:     {19, 275, 1299, 1811, 3091, 18, 20},
		row.ClassOperator:   {1, 3, 7, 8, 264, 776, 11, 267, 13, 14, 26},
	}
	for class, codes := range want {
		for _, code := range codes {
			if got := sqliteFault(code).class; got != class {
				t.Errorf("%d is %s, want %s", code, got, class)
			}
		}
	}
}

func TestErrorsWithoutANumberHaveTheirClass(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	for _, tt := range []struct {
		err  error
		want row.Class
	}{
		{driver.ErrBadConn, row.ClassNotApplied},
		{sql.ErrConnDone, row.ClassNotApplied},
		{sql.ErrTxDone, row.ClassCaller},
		{mysql.ErrPktTooLarge, row.ClassCaller},
		{mysql.ErrNoTLS, row.ClassOperator},
		{mysql.ErrInvalidConn, row.ClassUnknown},
		{context.Canceled, row.ClassUnknown},
		{context.DeadlineExceeded, row.ClassUnknown},
		{io.EOF, row.ClassUnknown},
		{io.ErrUnexpectedEOF, row.ClassUnknown},
		{errors.New("unforeseen"), row.ClassUnknown},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), row.ClassNotApplied},
		{dial(&net.DNSError{IsNotFound: true}), row.ClassNotApplied},
		{dial(os.ErrDeadlineExceeded), row.ClassNotApplied},
		{read(os.NewSyscallError("read", syscall.ECONNRESET)), row.ClassUnknown},
		{read(os.ErrDeadlineExceeded), row.ClassUnknown},
	} {
		err := classify("claim", tt.err)
		if got := row.ClassOf(err); got != tt.want {
			t.Errorf("%v is %s, want %s", tt.err, got, tt.want)
		}
		if !errors.Is(err, tt.err) {
			t.Errorf("%v is lost in %v", tt.err, err)
		}
	}
}

func TestAnswersAndClassifiedErrorsComeBackAsTheyAre(t *testing.T) {
	known := fmt.Errorf("again: %w", &row.Error{Class: row.ClassDuplicate, Op: "save", Err: errors.New("taken")})
	for _, err := range []error{nil, sql.ErrNoRows, known} {
		if got := classify("get", err); got != err { //nolint:errorlint // the very same value is the point
			t.Errorf("classify(%v) = %v", err, got)
		}
	}
}

func TestStatementThatGotNoConnectionIsNotApplied(t *testing.T) {
	for err, want := range map[error]row.Class{
		context.DeadlineExceeded: row.ClassNotApplied, mysql.ErrInvalidConn: row.ClassNotApplied,
		mysql.ErrNoTLS: row.ClassOperator,
	} {
		if got := row.ClassOf(notSent("save", err)); got != want {
			t.Errorf("%v before a statement is %s, want %s", err, got, want)
		}
	}
}

// ErrBadConn says that its own statement was not sent. The write before it may have been.
func TestReadThatFailsAfterAWriteLeavesTheOutcomeOpen(t *testing.T) {
	err := classify("claim", afterWrite("read back", driver.ErrBadConn))
	if got := row.ClassOf(err); got != row.ClassUnknown || !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("%v is %s, want %s", err, got, row.ClassUnknown)
	}
}

// TestRealErrorsHaveTheirClass provokes what can be provoked, to test the numbers against the servers.
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

package sqlstore

import (
	"database/sql/driver"
	"time"

	"modernc.org/sqlite"

	"github.com/delaytask/delaytask/internal/row"
)

// sqliteDialect serves the embedded database. Its clock is the machine's, through functions of our own, because SQLite's counts
// in milliseconds.
var sqliteDialect = dialect{
	now:      "(SELECT delaytask_now())", // a subquery, so that all rows of a statement see the same time
	server:   "'sqlite'",
	greatest: "MAX",
	add:      "delaytask_add(%[1]s, %[2]s)",
	// Not flattened, or the clock would be read once for each column.
	lease: "(execution_time, due_time) = (WITH b(begin) AS MATERIALIZED (SELECT %[1]s)" +
		" SELECT COALESCE(execution_time, begin), delaytask_add(begin, %[2]s) FROM b)",

	bindText: "CAST(? AS TEXT)",
	bindJSON: "CAST(? AS TEXT)",
	readText: "CAST(%s AS TEXT)", // not BLOB: the driver returns an empty one as NULL
	sameText: "%s = CAST(? AS TEXT)",

	byID:  " NOT INDEXED",
	byDue: " INDEXED BY delay_task_message_due",

	secondValue: "column2",

	rowsOpen:     "VALUES (",
	rowsNext:     "), (",
	rowsClose:    ")",
	updateJoined: "WITH v(%[1]s) AS (%[2]s) UPDATE " + table + " AS t NOT INDEXED SET %[3]s FROM v WHERE t.id = v.id AND %[4]s",
	updateListed: "UPDATE " + table + " AS t NOT INDEXED SET %[1]s WHERE %[2]s",
	deleteFrom:   "DELETE FROM %s AS t NOT INDEXED",
	upsert:       " ON CONFLICT (tag) DO UPDATE SET ",

	oldest: "WITH RECURSIVE s(status, tag) AS (" +
		" SELECT status, MIN(tag) FROM " + table + " WHERE status = ? UNION ALL" +
		" SELECT status, (SELECT MIN(m.tag) FROM " + table + " m WHERE m.status = s.status AND m.tag > s.tag)" +
		" FROM s WHERE tag IS NOT NULL" +
		") SELECT tag, (SELECT MIN(m.due_time) FROM " + table + " m WHERE m.status = s.status AND m.tag = s.tag) AS due_time" +
		" FROM s WHERE tag IS NOT NULL",

	counter: "SELECT seq AS last_id FROM sqlite_sequence WHERE name = '" + table + "'",
	countOn: "UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM " + table + ") WHERE name = '" + table + "'",

	inTransaction: sqliteInTransaction,

	columns:  "SELECT name, \"notnull\" AND dflt_value IS NULL AND NOT pk AS required FROM pragma_table_xinfo(?)",
	timeType: "TEXT",
}

func init() {
	sqlite.MustRegisterScalarFunction("delaytask_now", 0, sqliteNow)
	sqlite.MustRegisterDeterministicScalarFunction("delaytask_add", 2, sqliteAdd)
}

func sqliteNow(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	return row.Time(time.Now().UnixMicro()).String(), nil
}

// sqliteAdd adds milliseconds to a time. Garbage does not fail the statement, and with it the other rows of a batch: what is no
// time stays as it is, and what is no number adds nothing; both are reported when the row is read back.
func sqliteAdd(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	var t row.Time
	if err := t.Scan(args[0]); err != nil || t.IsZero() {
		return args[0], nil
	}
	millis, _ := args[1].(int64)
	return (t + row.Time(millis*1000)).String(), nil
}

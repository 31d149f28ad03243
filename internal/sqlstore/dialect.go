package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
)

// Kind is a kind of database: which SQL dialect it speaks.
type Kind uint8

const (
	MySQL  Kind = iota + 1 // MySQL, MariaDB, and servers compatible with them
	SQLite                 // embedded
)

// Embedded reports whether the database runs inside of this process, on the clock of this machine.
func (k Kind) Embedded() bool { return k == SQLite }

func (k Kind) String() string {
	switch k {
	case MySQL:
		return "mysql"
	case SQLite:
		return "sqlite"
	default:
		return "unknown"
	}
}

// dialect holds what differs between the kinds of database. All statements are written once, from its expressions. An
// expression with a verb takes the expressions that it works on.
//
// Besides a value of this type a new dialect needs:
//   - a [Kind], by its name, by [KindOf] and by dialectOf. KindOf takes what answers SELECT VERSION() for MySQL;
//     PostgreSQL answers it, too;
//   - a form of DSN and a way to open it: [Target];
//   - a package like sqlite of the root, by whose import a program links the driver, and leave in testkit/arrows for
//     what imports the driver;
//   - the classes of its errors: faultOf, and sessionKeeps for errors that a session repeats;
//   - with rowLocks, a way to find locked rows: [Store.Locked], where lockedBySkipping relies on reads of uncommitted
//     rows, and the clauses that [Store.LockActive] adds;
//   - statements that are written with ?: a placeholder of its own wants a rewrite in the lanes and reads, and in
//     onOwnSession; UNHEX and CAST(… AS CHAR), which saver, keeper, read, token, receiver and request write for all
//     kinds;
//   - the refusals after which a session is used again: lane.reusable, and collided in faults.go;
//   - what follows a refused INSERT in a caller's transaction: package save reads there (tx.go);
//   - migrations that end in the same tables and columns: a tree in package migrations, named by [Kind.String], whose
//     active_key is what activeKey computes;
//   - in package migrations also a table of versions, a lock for processes that migrate at once, its kind in tree, and
//     the errors of such processes in collided;
//   - what [Inspector] asks: variables, account, open transactions (INNODB_TRX), or [Inspector.Pragma]. Package doctor
//     chooses by the kind what it looks for, and whether the database has a clock of its own;
//   - `--for` of the command, raw statements of package bench, docs/database.md, a job of the continuous integration;
//   - a kind of server in package dbtest. The suites of storetest, the plans and the migrations then run on it.
type dialect struct {
	now      string // the time that decides
	server   string // identity of the server that answers
	greatest string // function: the later of two times, the larger of two numbers
	add      string // time %[1]s plus %[2]s milliseconds
	// Assigns a lease of %[2]s milliseconds that begins at %[1]s, and that begin as the start where there was none.
	lease string

	bindText string // placeholder for text: stores the bytes it is given whatever the character set of the connection
	bindJSON string // the same for a JSON column
	readText string // the stored bytes of %s
	sameText string // %s equals the text that is bound

	exactTag string // condition: rules out tags that are equal only because spaces at the end do not count

	byID  string // hint: enter by primary key
	byDue string // hint: enter by the index (status, tag, due_time)
	byKey string // hint: enter by active_key

	// Name of the second column of VALUES that an INSERT selects from. Empty: each row of the INSERT has all values.
	secondValue string

	// ELT and INTERVAL pick a row's value from a list. Otherwise a derived table is joined.
	picks                         bool
	rowsOpen, rowsNext, rowsClose string // around and between the rows of the derived table
	updateJoined                  string // fenced update: %[1]s columns, %[2]s rows, %[3]s assignments, %[4]s guards
	updateListed                  string // the same without derived table: %[1]s assignments, %[2]s ids and guards
	deleteFrom                    string // up to the WHERE, table %s
	upsert                        string // after an INSERT into a table with the key tag, before the assignments

	oldest string // tags that have rows of status ?, each with its smallest due time, at a cost per tag and not per row

	counter string // selects the id of the next plain INSERT, as a counter
	countOn string // makes the database number new rows from the largest id on

	explain      func(context.Context, queryer, planned) (keys []string, sorted bool, err error)
	indexes      []Index
	indexColumns string // selects names of indexes, and their columns between commas

	hashesKeys bool // active_key is a hash, not the plain bytes

	inTransaction func(context.Context, execer) (bool, error)

	columns       string // of table ?: name, and whether an INSERT must give it a value
	timeType      string // of a moment
	checks        func(s *Store, bodyLimit int) []StartCheck
	serviceChecks func(s *Store) []StartCheck

	rowLocks bool     // another transaction can hold a lock on a single row
	reserves bool     // lanes keep connections of their own
	session  []string // sets up a reserved connection
}

func dialectOf(kind Kind) dialect {
	switch kind {
	case SQLite:
		return sqliteDialect
	case MySQL:
		return mysqlDialect
	default:
		panic("sqlstore: no dialect for " + kind.String())
	}
}

// onOwnSession returns the dialect of a connection of a lane. Its character set is known, so text needs no protection.
func (d dialect) onOwnSession() dialect {
	d.bindText, d.bindJSON = "?", "?"
	if d.reserves {
		d.readText = "%s"
	}
	return d
}

const table = "delay_task_message"

// marks returns n placeholders, or other expressions, for an IN list or a VALUES row.
func marks(n int, mark string) string {
	return strings.TrimSuffix(strings.Repeat(mark+", ", n), ", ")
}

// mysqlDialect serves MySQL, MariaDB, and servers compatible with them.
var mysqlDialect = dialect{
	now:      "UTC_TIMESTAMP(6)",
	server:   "CONCAT(@@hostname, ':', @@port, ':', @@server_id)",
	greatest: "GREATEST",
	add:      "(%[1]s + INTERVAL %[2]s * 1000 MICROSECOND)",
	// In this order: the begin is read from the due time, which the second assignment writes.
	lease: "execution_time = COALESCE(execution_time, %[1]s), due_time = (%[1]s + INTERVAL %[2]s * 1000 MICROSECOND)",

	bindText: "CAST(? AS BINARY)",
	bindJSON: "CONVERT(CAST(? AS BINARY) USING utf8mb4)", // a JSON column of MySQL takes no binary string
	readText: "CAST(%s AS BINARY)",
	sameText: "CAST(%s AS BINARY) = CAST(? AS BINARY)",

	exactTag: " AND tag NOT LIKE '% '",

	byID:  " FORCE INDEX (PRIMARY)",
	byDue: " FORCE INDEX (delay_task_message_due)",
	byKey: " FORCE INDEX (delay_task_message_active_key)",

	picks:        true,
	updateListed: "UPDATE " + table + " t FORCE INDEX (PRIMARY) SET %[1]s WHERE %[2]s",
	deleteFrom:   "DELETE t FROM %s t FORCE INDEX (PRIMARY)",
	upsert:       " ON DUPLICATE KEY UPDATE ",

	inTransaction: mysqlInTransaction,

	columns: "SELECT column_name AS name," +
		" is_nullable = 'NO' AND column_default IS NULL" +
		" AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%' AS required" +
		" FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?",
	timeType: "DATETIME(6)",
	checks: func(s *Store, bodyLimit int) []StartCheck {
		return []StartCheck{
			{"pool", s.checkPool}, {"server", s.checkServer(bodyLimit)}, {CheckSchema, s.checkSchema(tables)},
			{"collation", s.checkCollation(exactColumns)}, {"engine", s.checkEngine(tables)},
			{CheckPrivileges, s.checkPrivileges(tables)}, {"time", s.checkTime}, {"counter", s.checkCounter},
		}
	},
	serviceChecks: func(s *Store) []StartCheck {
		return []StartCheck{
			{CheckSchema, s.checkSchema(serviceTables)}, {CheckPrivileges, s.checkPrivileges(serviceTables)},
			{"collation", s.checkCollation(exactServiceColumns)}, {"engine", s.checkEngine(serviceTables)},
		}
	},

	// Grouped by both columns and without a hint: otherwise the servers do not skip from tag to tag.
	oldest: "SELECT tag, CAST(MIN(due_time) AS CHAR) AS due_time FROM " + table +
		" WHERE status = ? GROUP BY status, tag",

	// The counter in information_schema of MySQL may be a day old.
	counter: "SHOW CREATE TABLE " + table,
	countOn: "ALTER TABLE " + table + " AUTO_INCREMENT = 1",

	explain: mysqlExplain,
	indexes: slices.Concat(schemaIndexes, serverIndexes),
	indexColumns: "SELECT table_name AS on_table, index_name AS name," +
		" GROUP_CONCAT(column_name ORDER BY seq_in_index) AS columns FROM information_schema.statistics" +
		" WHERE table_schema = DATABASE() AND table_name IN (" + quoted(Tables()) + ") GROUP BY table_name, index_name",

	hashesKeys: true,

	rowLocks: true,
	reserves: true,
	session: []string{
		"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
		"SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1," +
			" sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
	},
}

// sqliteDialect serves the embedded database. Its clock is the machine's, read by functions of delaytask, because
// SQLite's own counts in milliseconds.
var sqliteDialect = dialect{
	now:      "(SELECT delaytask_now())", // a subquery, so that all rows of a statement see the same time
	server:   "'sqlite'",
	greatest: "MAX",
	add:      "delaytask_add(%[1]s, %[2]s)",
	// MATERIALIZED, so that the clock is not read once for each column.
	lease: "(execution_time, due_time) = (WITH b(begin) AS MATERIALIZED (SELECT %[1]s)" +
		" SELECT COALESCE(execution_time, begin), delaytask_add(begin, %[2]s) FROM b)",

	bindText: "CAST(? AS TEXT)",
	bindJSON: "CAST(? AS TEXT)",
	readText: "CAST(%s AS TEXT)", // not BLOB: the driver returns an empty one as NULL
	sameText: "%s = CAST(? AS TEXT)",

	byID:  " NOT INDEXED",
	byDue: " INDEXED BY delay_task_message_due",

	secondValue: "column2",

	rowsOpen:  "VALUES (",
	rowsNext:  "), (",
	rowsClose: ")",
	updateJoined: "WITH v(%[1]s) AS (%[2]s) UPDATE " + table +
		" AS t NOT INDEXED SET %[3]s FROM v WHERE t.id = v.id AND %[4]s",
	updateListed: "UPDATE " + table + " AS t NOT INDEXED SET %[1]s WHERE %[2]s",
	deleteFrom:   "DELETE FROM %s AS t NOT INDEXED",
	upsert:       " ON CONFLICT (tag) DO UPDATE SET ",

	oldest: "WITH RECURSIVE s(status, tag) AS (" +
		" SELECT status, MIN(tag) FROM " + table + " WHERE status = ? UNION ALL" +
		" SELECT status, (SELECT MIN(m.tag) FROM " + table + " m WHERE m.status = s.status AND m.tag > s.tag)" +
		" FROM s WHERE tag IS NOT NULL" +
		") SELECT tag, (SELECT MIN(m.due_time) FROM " + table + " m" +
		" WHERE m.status = s.status AND m.tag = s.tag) AS due_time FROM s WHERE tag IS NOT NULL",

	counter: "SELECT seq AS last_id FROM sqlite_sequence WHERE name = '" + table + "'",
	countOn: "UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM " + table + ") WHERE name = '" + table + "'",

	explain: sqliteExplain,
	indexes: schemaIndexes,
	indexColumns: "SELECT m.tbl_name AS on_table, m.name AS name, GROUP_CONCAT(i.name) AS columns" +
		" FROM sqlite_master m, pragma_index_info(m.name) i WHERE m.type = 'index' GROUP BY m.name",

	inTransaction: sqliteInTransaction,

	columns:  "SELECT name, \"notnull\" AND dflt_value IS NULL AND NOT pk AS required FROM pragma_table_xinfo(?)",
	timeType: "TEXT",
	checks: func(s *Store, _ int) []StartCheck {
		return []StartCheck{
			{CheckSchema, s.checkSchema(tables)}, {CheckPrivileges, s.checkPrivileges(tables)}, {"time", s.checkTime},
			{"settings", s.checkSQLite}, {"counter", s.checkCounter},
		}
	},
	serviceChecks: func(s *Store) []StartCheck {
		return []StartCheck{
			{CheckSchema, s.checkSchema(serviceTables)}, {CheckPrivileges, s.checkPrivileges(serviceTables)},
		}
	},
}

// mysqlInTransaction sets a savepoint and releases it. Outside of a transaction a savepoint ends with its statement.
func mysqlInTransaction(ctx context.Context, tx execer) (bool, error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT delaytask_looks_for_a_transaction"); err != nil {
		return false, err
	}
	const noSuchSavepoint = 1305
	_, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT delaytask_looks_for_a_transaction")
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == noSuchSavepoint {
		return false, nil
	}
	return err == nil, err
}

// sqliteInTransaction uses a setting that SQLite refuses inside of a transaction, and that has no effect on the
// database of temporary tables. A savepoint would begin a transaction.
func sqliteInTransaction(ctx context.Context, tx execer) (bool, error) {
	_, err := tx.ExecContext(ctx, "PRAGMA temp.synchronous = FULL")
	const genericError = 1 // SQLITE_ERROR
	if e, ok := errors.AsType[sqliteError](err); ok && e.Code() == genericError {
		return true, nil
	}
	return false, err
}

// text is a statement that is being written. Numbers and moments are written out, which is safe and costs the server
// and the driver less than a parameter. Everything else is bound.
type text struct {
	sql     strings.Builder
	args    []any
	scratch [32]byte // of a number or a moment, no longer than 26 bytes
}

// grow makes room for so many bytes and parameters.
func (t *text) grow(bytes, args int) {
	t.sql.Grow(bytes)
	t.args = slices.Grow(t.args, args)
}

func (t *text) write(sql string) { t.sql.WriteString(sql) }

func (t *text) number(n int64) { t.sql.Write(strconv.AppendInt(t.scratch[:0], n, 10)) }

func (t *text) bind(mark string, value any) {
	t.write(mark)
	t.args = append(t.args, value)
}

// moment writes NULL for a time that is not set.
func (t *text) moment(m row.Time) {
	if m.IsZero() {
		t.write("NULL")
		return
	}
	t.sql.WriteByte('\'')
	t.sql.Write(m.Append(t.scratch[:0]))
	t.sql.WriteByte('\'')
}

// value writes one of the values that a batch carries: an int64, a [row.Time], or something that is bound.
func (t *text) value(mark string, value any) {
	switch v := value.(type) {
	case nil:
		t.write("NULL")
	case int64:
		t.number(v)
	case row.Time:
		t.moment(v)
	default:
		t.bind(mark, v)
	}
}

// orNull returns nil for the zero value, which is stored as NULL.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// momentOrNull returns nil for a time that is not set.
func momentOrNull(t row.Time) any { return orNull(t) }

func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func anys[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}

type clause struct {
	sql  string
	args []any
}

func joined(clauses []clause, sep string) clause {
	texts := make([]string, len(clauses))
	var args []any
	for i, c := range clauses {
		texts[i] = c.sql
		args = append(args, c.args...)
	}
	return clause{strings.Join(texts, sep), args}
}

// unionAll combines queries with a LIMIT each. A single one is not wrapped: a server would copy what it finds.
func unionAll(branches []clause) clause {
	if len(branches) == 1 {
		return branches[0]
	}
	for i := range branches {
		branches[i].sql = "SELECT * FROM (" + branches[i].sql + ") AS t" + fmt.Sprint(i)
	}
	return joined(branches, " UNION ALL ")
}

// idList writes ids for an IN list. Numbers need not be bound, which makes the text of a batch half as long.
func idList(ids []int64) string {
	var list strings.Builder
	for i, id := range ids {
		if i > 0 {
			list.WriteString(", ")
		}
		list.WriteString(strconv.FormatInt(id, 10))
	}
	return list.String()
}

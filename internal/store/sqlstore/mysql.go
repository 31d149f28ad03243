package sqlstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlDialect serves MySQL, MariaDB, and servers compatible with them.
var mysqlDialect = dialect{
	kind: MySQL,

	now:      "UTC_TIMESTAMP(6)",
	server:   "CONCAT(@@hostname, ':', @@port, ':', @@server_id)",
	greatest: "GREATEST",
	add:      "(%[1]s + INTERVAL %[2]s * 1000 MICROSECOND)",
	// In this order: the start is read from the due time, which the second assignment writes.
	lease: "start_time = CASE WHEN start_time > '" + unsetStart + "' THEN start_time ELSE %[1]s END," +
		" due_time = (%[1]s + INTERVAL %[2]s * 1000 MICROSECOND)",

	bindText: "CAST(? AS BINARY)",
	bindJSON: exactly, // a JSON column of MySQL takes no binary string
	readText: "CAST(%s AS BINARY)",
	bytes:    "BINARY",
	sameText: "CAST(%s AS BINARY) = CAST(? AS BINARY)",
	bindName: exactly + " COLLATE " + exact,

	exactTag: " AND tag NOT LIKE '% '",

	checksum: "CRC32",

	byID:  " FORCE INDEX (PRIMARY)",
	byDue: " FORCE INDEX (delay_task_message_due)",
	byKey: " FORCE INDEX (delay_task_message_active_key)",
	by:    " FORCE INDEX (%s)",

	picks:        true,
	updateListed: "UPDATE " + table + " t FORCE INDEX (PRIMARY) SET %[1]s WHERE %[2]s",
	deleteFrom:   "DELETE t FROM %s t FORCE INDEX (PRIMARY)",
	upsert:       " ON DUPLICATE KEY UPDATE ",

	inTransaction: mysqlInTransaction,
	begin:         "START TRANSACTION",

	columns: "SELECT table_name AS table_name, column_name AS name," +
		" is_nullable = 'NO' AND column_default IS NULL" +
		" AND extra NOT LIKE '%%auto_increment%%' AND extra NOT LIKE '%%GENERATED%%' AS required" +
		" FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name IN (%s)",
	timeType: "DATETIME(6)",

	oldest: "SELECT tag, CAST(MIN(due_time) AS CHAR) AS due_time FROM " + table + " FORCE INDEX (" + dueKey + ")" +
		" WHERE status = ? GROUP BY tag",

	eachFirst: func(function string, where clause) clause {
		return clause{"SELECT tag, CAST(" + function + "(due_time) AS CHAR) AS due_time FROM " + table +
			" FORCE INDEX (" + dueKey + ") WHERE " + where.sql + " GROUP BY tag", where.args}
	},

	eachFirstID: func(function string, where clause) clause {
		return clause{"SELECT tag, " + function + "(id) AS id FROM " + table + " FORCE INDEX (" + dueKey + ") WHERE " +
			where.sql + " GROUP BY tag", where.args}
	},

	countDue:  mysqlCountDue,
	limits:    true,
	estimates: true,

	// The counter in information_schema of MySQL may be a day old.
	counter: "SHOW CREATE TABLE " + table,
	countOn: "ALTER TABLE " + table + " AUTO_INCREMENT = 1",

	explain: mysqlExplain,
	indexes: slices.Concat(schemaIndexes, serverIndexes),
	// MySQL and MariaDB name the column differently that says whether statements may use an index.
	indexColumns: "SELECT * FROM information_schema.statistics WHERE table_schema = DATABASE()" +
		" AND table_name IN (" + quoted(Tables()) + ") ORDER BY table_name, index_name, seq_in_index",
	replaceIndex: "ALTER TABLE %[1]s DROP INDEX %[2]s, ADD %[3]sINDEX %[2]s (%[4]s)",

	hashesKeys: true,

	rowLocks: true,
	reserves: true,
	session: []string{
		"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
		"SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1, sql_safe_updates = 0, sql_select_limit = DEFAULT," +
			" sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
	},
}

// exactly reads a parameter as UTF-8. MariaDB takes CONVERT in place of the outer CAST for one of characters of the
// connection, and a set of three bytes has no place for some.
const exactly = "CAST(CAST(? AS BINARY) AS CHAR CHARACTER SET utf8mb4)"

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

// mysqlExplain returns the indexes that a statement enters the table by, each once, and whether it sorts.
func mysqlExplain(ctx context.Context, q queryer, p planned) (keys []string, sorted bool, err error) {
	steps, err := readTexts(ctx, q, "EXPLAIN FORMAT=TRADITIONAL "+p.query, p.args...)
	for _, step := range steps {
		if name := step["table"]; name == table || name == "t" {
			keys = append(keys, step["key"])
			sorted = sorted || strings.Contains(step["extra"], "filesort")
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), sorted, err
}

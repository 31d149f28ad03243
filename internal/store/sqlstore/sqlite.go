package sqlstore

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// sqliteDialect serves the embedded database. Its clock is the machine's, read by functions of delaytask, because
// SQLite's own counts in milliseconds.
var sqliteDialect = dialect{
	kind: SQLite,

	now:      "(SELECT delaytask_now())", // a subquery, so that all rows of a statement see the same time
	server:   "'sqlite'",
	greatest: "MAX",
	add:      "delaytask_add(%[1]s, %[2]s)",
	// MATERIALIZED, so that the clock is not read once for each column.
	lease: "(start_time, due_time) = (WITH b(begin) AS MATERIALIZED (SELECT %[1]s)" +
		" SELECT CASE WHEN start_time > '" + unsetStart + "' THEN start_time ELSE begin END," +
		" delaytask_add(begin, %[2]s) FROM b)",

	bindText: "CAST(? AS TEXT)",
	bindJSON: "CAST(? AS TEXT)",
	bytes:    "BLOB",
	readText: "CAST(%s AS TEXT)", // not BLOB: the driver returns an empty one as NULL
	sameText: "%s = CAST(? AS TEXT)",
	bindName: "CAST(? AS TEXT)",

	hasPlace: " AND (due_time IS NULL OR strftime('%Y-%m-%d %H:%M:%S', due_time) = substr(due_time, 1, 19)" +
		" AND substr(due_time, 20) NOT GLOB '*[^.0-9]*')",

	checksum: "delaytask_crc32",

	byID:  " NOT INDEXED",
	byDue: " INDEXED BY delay_task_message_due",
	by:    " INDEXED BY %s",

	secondValue: "column2",

	rowsOpen:  "VALUES (",
	rowsNext:  "), (",
	rowsClose: ")",
	updateJoined: "WITH v(%[1]s) AS (%[2]s) UPDATE " + table +
		" AS t NOT INDEXED SET %[3]s FROM v WHERE t.id = v.id AND %[4]s",
	updateListed: "UPDATE " + table + " AS t NOT INDEXED SET %[1]s WHERE %[2]s",
	deleteFrom:   "DELETE FROM %s AS t NOT INDEXED",
	upsert:       " ON CONFLICT (tag) DO UPDATE SET ",

	oldest: "SELECT each_tag AS tag, (SELECT MIN(m.due_time) FROM " + table + " m" +
		" WHERE m.tag = each_tag AND m.status = ?1) AS due_time FROM " + sqliteTags +
		" WHERE EXISTS (SELECT 1 FROM " + table + " m WHERE m.tag = each_tag AND m.status = ?1)",

	eachFirst: func(function string, where clause) clause {
		of := " FROM " + table + " INDEXED BY " + dueKey + " WHERE tag = each_tag AND " + where.sql
		return clause{"SELECT each_tag AS tag, (SELECT " + function + "(due_time)" + of + ") AS due_time FROM " +
			sqliteTags + " WHERE EXISTS (SELECT 1" + of + ")", slices.Concat(where.args, where.args)}
	},

	eachFirstID: func(function string, where clause) clause {
		of := " FROM " + table + " INDEXED BY " + dueKey + " WHERE tag = each_tag AND " + where.sql
		return clause{"SELECT each_tag AS tag, (SELECT " + function + "(id)" + of + ") AS id FROM " +
			sqliteTags + " WHERE EXISTS (SELECT 1" + of + ")", slices.Concat(where.args, where.args)}
	},

	countDue:  sqliteCountDue,
	capsCells: true,

	counter: "SELECT seq AS last_id FROM sqlite_sequence WHERE name = '" + table + "'",
	countOn: "UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM " + table + ") WHERE name = '" + table + "'",

	explain: sqliteExplain,
	indexes: schemaIndexes,
	indexColumns: "SELECT m.tbl_name AS table_name, m.name AS index_name, i.name AS column_name" +
		" FROM sqlite_master m, pragma_index_info(m.name) i WHERE m.type = 'index' ORDER BY m.name, i.seqno",
	replaceIndex: "DROP INDEX %[2]s; CREATE %[3]sINDEX %[2]s ON %[1]s (%[4]s)",

	inTransaction: sqliteInTransaction,
	begin:         "BEGIN IMMEDIATE", // one that reads first may be refused at its first write

	columns: "SELECT m.name, c.name, \"notnull\" AND dflt_value IS NULL AND NOT pk AS required" +
		" FROM sqlite_schema AS m, pragma_table_xinfo(m.name) AS c WHERE m.name IN (%s)",
	timeType: "TEXT",
}

// sqliteTags skips from tag to tag. SQLite does so for a DISTINCT only where it has statistics.
const sqliteTags = "(WITH RECURSIVE s(each_tag) AS (" +
	" SELECT MIN(tag) FROM " + table + " UNION ALL" +
	" SELECT (SELECT MIN(m.tag) FROM " + table + " m WHERE m.tag > s.each_tag) FROM s WHERE each_tag IS NOT NULL" +
	") SELECT each_tag FROM s WHERE each_tag IS NOT NULL)"

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

// sqliteSteps names the indexes as the steps of a plan do.
var sqliteSteps = []struct{ step, key string }{
	{"PRIMARY KEY", primary}, {"INDEX " + dueKey, dueKey}, {"INDEX " + lookKey, lookKey},
	{"INDEX " + nameKey, nameKey}, {"INDEX " + outcomeKey, outcomeKey}, {"INDEX " + actionKey, actionKey},
	{"INDEX sqlite_autoindex_", activeKey},
}

// sqliteExplain is mysqlExplain for SQLite.
func sqliteExplain(ctx context.Context, q queryer, p planned) (keys []string, sorted bool, err error) {
	steps, err := readTexts(ctx, q, "EXPLAIN QUERY PLAN "+p.query, p.args...)
	for _, step := range steps {
		detail := step["detail"] + " "
		at := slices.IndexFunc(sqliteSteps, func(known struct{ step, key string }) bool {
			return strings.Contains(detail, known.step)
		})
		switch {
		case strings.HasPrefix(detail, "USE TEMP"):
			sorted = true
		case at >= 0:
			keys = append(keys, sqliteSteps[at].key)
		case strings.Contains(detail, " USING "), strings.HasPrefix(detail, "SCAN t "),
			strings.HasPrefix(detail, "SCAN delay_task"):
			keys = append(keys, "")
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), sorted, err
}

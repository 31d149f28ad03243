package sqlstore

// mysqlDialect serves MySQL, MariaDB, and what speaks like them.
var mysqlDialect = dialect{
	now:      "UTC_TIMESTAMP(6)",
	server:   "CONCAT(@@hostname, ':', @@port, ':', @@server_id)",
	greatest: "GREATEST",
	add:      "(%[1]s + INTERVAL %[2]s * 1000 MICROSECOND)",
	// In this order: the begin is read from the due time that the second one writes.
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

	// Grouped by both columns and without a hint, else the servers do not skip from tag to tag.
	oldest: "SELECT tag, CAST(MIN(due_time) AS CHAR) AS due_time FROM " + table + " WHERE status = ? GROUP BY status, tag",

	// MySQL shows a counter in information_schema that is up to a day old.
	counter: "SHOW CREATE TABLE " + table,
	countOn: "ALTER TABLE " + table + " AUTO_INCREMENT = 1",

	hashesKeys: true,

	rowLocks: true,
	reserves: true,
	session: []string{
		"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
		"SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1," +
			" sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
	},
}

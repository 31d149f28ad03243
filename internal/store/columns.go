package store

import (
	"fmt"
	"strings"
)

// selectList reads the columns of record. Times are read as text and texts as the bytes that are stored, so that a connection's
// time zone, parseTime and character set change nothing.
func (d dialect) selectList(bodies bool) string {
	body := "NULL AS message_body"
	if bodies {
		body = d.text("message_body")
	}
	return strings.Join([]string{
		"id", d.text("tag"), d.text("task_key"), body, "status", "version", "attempt", "max_attempts", "crash_count", "ttr",
		"priority", d.text("headers"), "max_late_ms", "late_policy", "ip_address", d.text("executor"), "delay_time",
		d.time("expected_time"), d.time("execution_time"), d.time("finish_time"), d.time("due_time"),
		d.text("error_stack"), d.text("errors"), d.time("create_time"), d.time("update_time"),
	}, ", ")
}

func (d dialect) stateList() string {
	return strings.Join([]string{"id", "version", "status", d.time("due_time"), d.text("executor")}, ", ")
}

// reading selects the clock and who answered, as db_time and db_server.
func (d dialect) reading() string {
	return "CAST(" + d.now + " AS CHAR) AS db_time, " + d.server + " AS db_server"
}

func (d dialect) text(name string) string { return fmt.Sprintf(d.readText, name) + " AS " + name }

func (d dialect) time(name string) string { return "CAST(" + name + " AS CHAR) AS " + name }

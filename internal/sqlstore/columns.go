package sqlstore

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
		d.attemptList(), body, "status", "ip_address", d.text("executor"), "delay_time", d.time("create_time"),
		d.time("update_time"),
	}, ", ")
}

// claimedList leaves out what the claim itself has written and what no attempt needs: a third of what a read-back of many rows
// costs. The clock is read in the row with the lowest id.
func (d dialect) claimedList(lowest int64) string {
	once := func(expression, name string) string {
		return fmt.Sprintf("CASE WHEN id = %d THEN %s END AS %s", lowest, expression, name)
	}
	return strings.Join([]string{
		d.attemptList(), d.text("message_body"), once("CAST("+d.now+" AS CHAR)", "db_time"), once(d.server, "db_server"),
	}, ", ")
}

func (d dialect) attemptList() string {
	return strings.Join([]string{
		"id", d.text("tag"), d.text("task_key"), "version", "attempt", "max_attempts", "crash_count", "ttr", "priority",
		d.text("headers"), "max_late_ms", "late_policy", d.time("expected_time"), d.time("execution_time"),
		d.time("finish_time"), d.time("due_time"), d.text("error_stack"), d.text("errors"),
	}, ", ")
}

func (d dialect) stateList() string {
	return strings.Join([]string{"id", d.text("tag"), "version", "status", d.time("due_time"), d.text("executor")}, ", ")
}

// reading selects the clock and who answered, as db_time and db_server.
func (d dialect) reading() string {
	return "CAST(" + d.now + " AS CHAR) AS db_time, " + d.server + " AS db_server"
}

func (d dialect) text(name string) string { return fmt.Sprintf(d.readText, name) + " AS " + name }

func (d dialect) time(name string) string { return "CAST(" + name + " AS CHAR) AS " + name }

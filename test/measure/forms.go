package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// result is what a settle writes to one row, which is executing at version 1.
type result struct {
	id                     int64
	status                 int64
	execution, finish, due any
	failure                any
	executor               string
}

// values are in the order of settled.
func (r result) values() []any {
	return []any{r.status, r.due, r.execution, r.finish, r.failure, r.executor}
}

var settled = []string{"status", "due_time", "execution_time", "finish_time", "error_stack", "executor"}

// settle is one statement of a form.
type settle struct {
	sql  string
	args []any
}

// form is a way to write many results at once, fenced by version and status. Where bound is true, the SQL must depend on the
// number of rows alone, so that it can be prepared once.
type form struct {
	name       string
	statements func(rows []result, bound bool) []settle
}

var forms = []form{
	{"UPDATE … JOIN (SELECT … UNION ALL …)", joinedRows},
	{"UPDATE … JOIN JSON_TABLE", joinedJSON},
	{"CASE id WHEN …", caseByID},
	{"ELT(INTERVAL(id, …), …)", elementByID},
	{"INSERT … ON DUPLICATE KEY UPDATE", upsert},
	{"a group per status, IN list, times of the statement", groups},
}

// joinedRows has the values first, and joins the table by its primary key.
func joinedRows(rows []result, bound bool) []settle {
	var s settle
	number := func(n int64) string {
		if !bound {
			return strconv.FormatInt(n, 10)
		}
		s.args = append(s.args, n)
		return "CAST(? AS SIGNED)" // parameters in a SELECT list have no type of their own
	}
	for i, r := range rows {
		names := func(string) string { return "" }
		if i == 0 {
			names = func(name string) string { return " AS new_" + name }
		} else {
			s.sql += " UNION ALL "
		}
		s.sql += "SELECT " + number(r.id) + names("id") + ", " + number(r.status) + names("status")
		for j, v := range r.values()[1:] {
			s.sql += ", ?" + names(settled[j+1])
			s.args = append(s.args, v)
		}
	}
	s.sql = updateJoined("(" + s.sql + ")")
	return []settle{s}
}

// joinedJSON sends all values as one parameter.
func joinedJSON(rows []result, _ bool) []settle {
	lines := make([][]any, len(rows))
	for i, r := range rows {
		lines[i] = append([]any{r.id}, r.values()...)
	}
	values, err := json.Marshal(lines)
	if err != nil {
		panic(err) // numbers and strings
	}
	columns := "new_id BIGINT PATH '$[0]', new_status INT PATH '$[1]'"
	for i, name := range settled[1:] {
		columns += fmt.Sprintf(", new_%s VARCHAR(8192) PATH '$[%d]'", name, i+2)
	}
	return []settle{{updateJoined("JSON_TABLE(?, '$[*]' COLUMNS (" + columns + "))"), []any{string(values)}}}
}

func updateJoined(values string) string {
	return "UPDATE " + values + " v STRAIGHT_JOIN delay_task_message t FORCE INDEX (PRIMARY) ON t.id = v.new_id SET " +
		assignments(func(name string) string { return "v.new_" + name }) + " WHERE t.version = 1 AND t.status = 3"
}

func caseByID(rows []result, _ bool) []settle {
	return listed(rows, func(value func(result) any) (sql string, args []any) {
		for _, r := range rows {
			args = append(args, r.id, value(r))
		}
		return "CASE id" + strings.Repeat(" WHEN ? THEN ?", len(rows)) + " END", args
	})
}

// elementByID is the store's form: it finds a row's place among the ids, which ascend, and takes the value that stands there.
// INTERVAL looks by halves. The store writes what is the same for all rows only once; this one does not.
func elementByID(rows []result, _ bool) []settle {
	return listed(rows, func(value func(result) any) (sql string, args []any) {
		args = ids(rows)
		for _, r := range rows {
			args = append(args, value(r))
		}
		return "ELT(INTERVAL(id, " + marks(len(rows)) + "), " + marks(len(rows)) + ")", args
	})
}

// listed updates the table alone, with an expression for each column that chooses a row's value.
func listed(rows []result, choose func(value func(result) any) (sql string, args []any)) []settle {
	var s settle
	column := 0
	set := assignments(func(string) string {
		sql, args := choose(func(r result) any { return r.values()[column] })
		s.args = append(s.args, args...)
		column++
		return sql
	})
	s.sql = "UPDATE delay_task_message FORCE INDEX (PRIMARY) SET " + set + " WHERE id IN (" + marks(len(rows)) + ")" +
		" AND version = 1 AND status = 3"
	s.args = append(s.args, ids(rows)...)
	return []settle{s}
}

// upsert needs the columns that have no default, although the row exists; were it gone, this form would bring it back.
func upsert(rows []result, _ bool) []settle {
	columns := append([]string{"id", "tag", "message_body", "expected_time", "version"}, settled...)
	s := settle{sql: "INSERT INTO delay_task_message (" + strings.Join(columns, ", ") + ") VALUES " +
		repeat(len(rows), "(?, '', '', '2000-01-01', ?, ?, ?, ?, ?, ?, ?)") + " ON DUPLICATE KEY UPDATE "}
	for _, r := range rows {
		s.args = append(append(s.args, r.id, 1), r.values()...)
	}
	// Assignments see what earlier ones wrote, so the columns of the fence come last, and the very last looks for the new
	// version.
	for _, name := range settled[1:] {
		s.sql += fmt.Sprintf("%s = IF(version = VALUES(version) AND status = 3, VALUES(%[1]s), %[1]s), ", name)
	}
	s.sql += "update_time = UTC_TIMESTAMP(6), version = IF(version = VALUES(version) AND status = 3, version + 1, version)," +
		" status = IF(version = VALUES(version) + 1 AND status = 3, VALUES(status), status)"
	return []settle{s}
}

// groups writes less than the others: no time, error or executor of a row's own. It bounds what simpler statements could save.
func groups(rows []result, _ bool) []settle {
	var all []settle
	for _, status := range []int64{1, 0} {
		s := settle{args: []any{status}}
		var group []result
		for _, r := range rows {
			if r.status == status {
				group = append(group, r)
			}
		}
		s.sql = "UPDATE delay_task_message FORCE INDEX (PRIMARY) SET status = ?, version = version + 1," +
			" due_time = UTC_TIMESTAMP(6), execution_time = UTC_TIMESTAMP(6)," +
			" finish_time = UTC_TIMESTAMP(6), update_time = UTC_TIMESTAMP(6)" +
			" WHERE id IN (" + marks(len(group)) + ") AND version = 1 AND status = 3"
		s.args = append(s.args, ids(group)...)
		all = append(all, s)
	}
	return all
}

func assignments(value func(name string) string) string {
	set := "version = version + 1, update_time = UTC_TIMESTAMP(6)"
	for _, name := range settled {
		set += ", " + name + " = " + value(name)
	}
	return set
}

func ids(rows []result) []any {
	all := make([]any, len(rows))
	for i, r := range rows {
		all[i] = r.id
	}
	return all
}

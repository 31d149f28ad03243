package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

const (
	claimSets = "status = 3, version = version + 1, attempt = attempt + 1, executor = '" + rawExecutor +
		"', ip_address = 2130706433"

	mysqlClaimSets = claimSets + ", due_time = UTC_TIMESTAMP(6) + INTERVAL 15 SECOND, update_time = UTC_TIMESTAMP(6)"

	claimGuard  = "version = 0 AND status = 0"
	settleGuard = "t.version = 1 AND t.status = 3"

	settleSets = "status = 1, version = t.version + 1, attempt = 1, crash_count = 0, error_stack = NULL, errors = NULL," +
		" executor = '" + rawExecutor + "', due_time = v.finish, execution_time = v.execution, finish_time = v.finish," +
		" update_time = "

	mysqlTable = "delay_task_message t FORCE INDEX (PRIMARY)"
)

// claimForms has one form for each database: the rows of a batch differ in nothing but their id, so no values have to be joined.
var claimForms = []updateForm{
	{"IN list", store.MySQL, func(ids []int64) string {
		return "UPDATE " + mysqlTable + " SET " + mysqlClaimSets + " WHERE id IN (" + list(ids) + ") AND " + claimGuard
	}},
	{"IN list", store.SQLite, func(ids []int64) string {
		now := row.At(time.Now())
		return fmt.Sprintf("UPDATE delay_task_message AS t NOT INDEXED SET %s, due_time = '%s', update_time = '%s'"+
			" WHERE id IN (%s) AND %s", claimSets, now.Add(15*time.Second), now, list(ids), claimGuard)
	}},
}

// settleForms: each row has times of its own.
var settleForms = []updateForm{
	{"JOIN (SELECT … UNION ALL SELECT …)", store.MySQL, func(ids []int64) string {
		return joined("(" + selects(ids, outcomes(ids)) + ")")
	}},
	{"JOIN (SELECT … UNION ALL VALUES (…), …)", store.MySQL, func(ids []int64) string { // MariaDB
		return joined("(" + valuesAfterSelect(ids, outcomes(ids), "(") + ")")
	}},
	{"JOIN (SELECT … UNION ALL VALUES ROW(…), …)", store.MySQL, func(ids []int64) string { // MySQL
		return joined("(" + valuesAfterSelect(ids, outcomes(ids), "ROW(") + ")")
	}},
	{"JOIN JSON_TABLE", store.MySQL, func(ids []int64) string {
		rows := make([][]any, len(ids))
		for i, o := range outcomes(ids) {
			rows[i] = []any{ids[i], o.execution.String(), o.finish.String()}
		}
		values, err := json.Marshal(rows)
		if err != nil {
			panic(err) // numbers and strings
		}
		return joined("JSON_TABLE('" + string(values) + "', '$[*]' COLUMNS (id BIGINT PATH '$[0]'," +
			" execution DATETIME(6) PATH '$[1]', finish DATETIME(6) PATH '$[2]'))")
	}},
	{"FROM (VALUES …)", store.SQLite, func(ids []int64) string {
		return "WITH v(id, execution, finish) AS (VALUES " + values(ids, outcomes(ids), "(") + ") UPDATE delay_task_message AS t" +
			" NOT INDEXED SET " + settleSets + "'" + row.At(time.Now()).String() + "' FROM v WHERE t.id = v.id AND " + settleGuard
	}},
}

// outcome is what a settle says of a task of its own.
type outcome struct{ execution, finish row.Time }

func outcomes(ids []int64) []outcome {
	now := row.At(time.Now())
	all := make([]outcome, len(ids))
	for i := range all {
		all[i] = outcome{now + row.Time(i), now + row.Time(i) + 5}
	}
	return all
}

// joined puts the values first, so that the table is entered by its primary key.
func joined(values string) string {
	return "UPDATE " + values + " v STRAIGHT_JOIN " + mysqlTable + " ON t.id = v.id SET " +
		settleSets + "UTC_TIMESTAMP(6) WHERE " + settleGuard
}

func selects(ids []int64, of []outcome) string {
	text := []byte("SELECT ")
	for i, id := range ids {
		if i > 0 {
			text = append(text, " UNION ALL SELECT "...)
		}
		text = appendOutcome(text, id, of[i], i == 0)
	}
	return string(text)
}

// valuesAfterSelect names the columns in a first SELECT, which all servers take in the same way, and lists the other rows.
func valuesAfterSelect(ids []int64, of []outcome, open string) string {
	text := selects(ids[:1], of)
	if len(ids) == 1 {
		return text
	}
	return text + " UNION ALL VALUES " + values(ids[1:], of[1:], open)
}

func values(ids []int64, of []outcome, open string) string {
	var text []byte
	for i, id := range ids {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, open...)
		text = append(appendOutcome(text, id, of[i], false), ')')
	}
	return string(text)
}

func appendOutcome(text []byte, id int64, of outcome, named bool) []byte {
	as := func(name string) {
		if named {
			text = append(text, " AS "+name...)
		}
	}
	text = strconv.AppendInt(text, id, 10)
	as("id")
	text = append(text, ", '"+of.execution.String()+"'"...)
	as("execution")
	text = append(text, ", '"+of.finish.String()+"'"...)
	as("finish")
	return text
}

// list renders ids for an IN list.
func list(ids []int64) string {
	var text []byte
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	return string(text)
}

package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

const (
	claimSets = "status = 3, version = version + 1, attempt = attempt + 1, executor = '" + rawExecutor +
		"', ip_address = 2130706433"

	mysqlClaimSets = claimSets + ", due_time = UTC_TIMESTAMP(6) + INTERVAL 15 SECOND, update_time = UTC_TIMESTAMP(6)"

	claimGuard  = "version = 0 AND status = 0"
	settleGuard = "t.version = 1 AND t.status = 3"

	// All rows of a batch finish when it is sent; each started at a time of its own.
	settleSets = "status = 1, version = t.version + 1, attempt = 1, crash_count = 0, error_stack = NULL, errors = " +
		"NULL, executor = '" + rawExecutor +
		"', due_time = '%[1]s', finish_time = '%[1]s', update_time = %[2]s, execution_time = %[3]s"

	mysqlTable = "delay_task_message t FORCE INDEX (PRIMARY)"
)

// claimForms has one form for each database: the rows of a batch differ in their id alone, so no values have to be
// joined.
var claimForms = []updateForm{
	{"IN list", sqlstore.MySQL, func(ids []int64) string {
		return "UPDATE " + mysqlTable + " SET " + mysqlClaimSets + " WHERE id IN (" + list(ids) + ") AND " + claimGuard
	}},
	{"IN list", sqlstore.SQLite, func(ids []int64) string {
		now := row.At(time.Now())
		return fmt.Sprintf("UPDATE delay_task_message AS t NOT INDEXED SET %s, due_time = '%s', update_time = '%s'"+
			" WHERE id IN (%s) AND %s", claimSets, now.Add(15*time.Second), now, list(ids), claimGuard)
	}},
}

// settleForms: each row has a start of its own.
var settleForms = []updateForm{
	{"ELT(INTERVAL(id, …), …)", sqlstore.MySQL, func(ids []int64) string {
		pick := "ELT(INTERVAL(t.id, " + list(ids) + "), '" + strings.Join(starts(ids), "', '") + "')"
		return "UPDATE " + mysqlTable + " SET " + mysqlSettleSets(pick) + " WHERE t.id IN (" + list(ids) + ") AND " +
			settleGuard
	}},
	{"JOIN (SELECT … UNION ALL SELECT …)", sqlstore.MySQL, func(ids []int64) string {
		return joined("(" + selects(ids, starts(ids)) + ")")
	}},
	{"JOIN (SELECT … UNION ALL VALUES (…), …)", sqlstore.MySQL, func(ids []int64) string { // MariaDB
		return joined("(" + valuesAfterSelect(ids, "(") + ")")
	}},
	{"JOIN (SELECT … UNION ALL VALUES ROW(…), …)", sqlstore.MySQL, func(ids []int64) string { // MySQL
		return joined("(" + valuesAfterSelect(ids, "ROW(") + ")")
	}},
	{"JOIN JSON_TABLE", sqlstore.MySQL, func(ids []int64) string {
		rows := make([][]any, len(ids))
		for i, start := range starts(ids) {
			rows[i] = []any{ids[i], start}
		}
		values, err := json.Marshal(rows)
		if err != nil {
			panic(err) // numbers and strings
		}
		return joined("JSON_TABLE('" + string(values) + "', '$[*]' COLUMNS (id BIGINT PATH '$[0]'," +
			" execution DATETIME(6) PATH '$[1]'))")
	}},
	{"FROM (VALUES …)", sqlstore.SQLite, func(ids []int64) string {
		now := row.At(time.Now()).String()
		return "WITH v(id, execution) AS (VALUES " + values(ids, starts(ids), "(") +
			") UPDATE delay_task_message AS t NOT INDEXED SET " + fmt.Sprintf(settleSets, now, "'"+now+"'",
			"v.execution") + " FROM v WHERE t.id = v.id AND " + settleGuard
	}},
}

// starts returns when each of the tasks was started.
func starts(ids []int64) []string {
	now := row.At(time.Now())
	all := make([]string, len(ids))
	for i := range all {
		all[i] = (now + row.Time(i)).String()
	}
	return all
}

func mysqlSettleSets(execution string) string {
	return fmt.Sprintf(settleSets, row.At(time.Now()), "UTC_TIMESTAMP(6)", execution)
}

// joined puts the values first, so that the table is entered by its primary key.
func joined(values string) string {
	return "UPDATE " + values + " v STRAIGHT_JOIN " + mysqlTable + " ON t.id = v.id SET " +
		mysqlSettleSets("v.execution") + " WHERE " + settleGuard
}

func selects(ids []int64, starts []string) string {
	var text []byte
	for i, id := range ids {
		if i == 0 {
			text = fmt.Appendf(text, "SELECT %d AS id, '%s' AS execution", id, starts[i])
		} else {
			text = fmt.Appendf(text, " UNION ALL SELECT %d, '%s'", id, starts[i])
		}
	}
	return string(text)
}

// valuesAfterSelect names the columns in a first SELECT, which all servers take in the same way, and lists the other
// rows.
func valuesAfterSelect(ids []int64, open string) string {
	of := starts(ids)
	text := selects(ids[:1], of)
	if len(ids) == 1 {
		return text
	}
	return text + " UNION ALL VALUES " + values(ids[1:], of[1:], open)
}

func values(ids []int64, starts []string, open string) string {
	var text []byte
	for i, id := range ids {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = fmt.Appendf(text, "%s%d, '%s')", open, id, starts[i])
	}
	return string(text)
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

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// schema names the columns that the statements need. A table may have more, if a row can be inserted without them.
var schema = map[string][]string{
	table:         namesOf(tasks.columns),
	nodeTable:     namesOf(nodes.columns),
	processTable:  namesOf(processes.columns),
	tagTable:      {"tag", "paused", "reason", "update_time"},
	scheduleTable: namesOf(schedules.columns),
	runTable:      namesOf(scheduleRuns.columns),
	rollupTable:   namesOf(rollups.columns),
	auditTable:    namesOf(audits.columns),
	requestTable:  namesOf(requests.columns),
	tokenTable:    namesOf(tokens.columns),
	sessionTable:  namesOf(sessions.columns),
	workerTable:   namesOf(receivers.columns),
}

func (s *Store) checkSchema(tables []string) check {
	return func(ctx context.Context) ([]Warning, error) {
		there := map[string][]string{} // columns, by table
		var wrong []error
		var in, name string
		var required bool
		query := fmt.Sprintf(s.dialect.columns, quoted(tables)) // one for all: a server opens a file for each
		err := scan(ctx, s.db, clause{sql: query}, func() {
			there[in] = append(there[in], name)
			if required && !slices.Contains(schema[in], name) {
				wrong = append(wrong, refuse("give the column a default, or let it be NULL",
					"column %s.%s is not delaytask's and must be given", in, name))
			}
		}, &in, &name, &required)
		if err != nil {
			return nil, err
		}
		for _, name := range tables {
			switch err := s.checkColumns(ctx, name, there[name]); {
			case IsDenied(err):
				return nil, refuse(grantOn(tables), "the user may not read %s: %w", name, err)
			case err != nil:
				wrong = append(wrong, err)
			}
		}
		return nil, errors.Join(wrong...)
	}
}

// checkColumns refuses a table that lacks columns. A server hides a table from an account that has no privilege on it.
func (s *Store) checkColumns(ctx context.Context, table string, there []string) error {
	missing := slices.DeleteFunc(slices.Clone(schema[table]), func(c string) bool { return slices.Contains(there, c) })
	switch {
	case len(there) == 0:
		_, err := readTexts(ctx, s.db, "SELECT 1 AS one FROM "+table+" WHERE 1 = 0")
		if IsDenied(err) {
			return err
		}
		return refuse(Migrate, "table %s is missing", table)
	case len(missing) > 0:
		return refuse(Migrate, "table %s lacks the columns %s", table, strings.Join(missing, ", "))
	}
	return nil
}

// checkPrivileges runs one statement of each kind on each table. None of them matches a row. They run on a connection
// of a lane, because a pool with sql_safe_updates refuses them on MariaDB.
func (s *Store) checkPrivileges(tables []string) check {
	return func(ctx context.Context) ([]Warning, error) {
		for _, name := range tables {
			err := classify("check the database", s.tryWrites(ctx, name))
			if e, ok := errors.AsType[*row.Error](err); ok && e.Class == row.ClassOperator {
				err = refuse(grantOn(tables), "the user may not write to %s: %w", name, e.Err)
			} else if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				err = refuse(AwaitLock, "a write to %s waits for a lock of the whole table or server", name)
			}
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

func grantOn(tables []string) string {
	last := len(tables) - 1
	return "grant the user SELECT, INSERT, UPDATE and DELETE on the tables " + strings.Join(tables[:last], ", ") +
		" and " + tables[last]
}

func (s *Store) tryWrites(ctx context.Context, table string) error {
	written := slices.DeleteFunc(slices.Clone(schema[table]), func(column string) bool {
		return slices.Contains(generated, column) && table == tasks.name
	})
	columns, last := strings.Join(written, ", "), written[len(written)-1]
	for _, statement := range []string{
		"UPDATE " + table + " SET " + last + " = " + last + " WHERE 1 = 0",
		"DELETE FROM " + table + " WHERE 1 = 0",
		"INSERT INTO " + table + " (" + columns + ") SELECT " + columns + " FROM " + table + " WHERE 1 = 0",
	} {
		if err := s.lanes[chores].write(ctx, "check the database", clause{sql: statement}); err != nil {
			return err
		}
	}
	return nil
}

const exact = "utf8mb4_bin"

// The columns whose values must be compared byte by byte.
var (
	exactColumns        = []string{table + ".tag", table + ".task_key", tagTable + ".tag", scheduleTable + ".name"}
	exactServiceColumns = []string{tokenTable + ".name", workerTable + ".app"}
)

// checkCollation refuses columns of another collation: a statement for one tag or key would also match tags or keys
// that differ in case or accents.
func (s *Store) checkCollation(columns []string) check {
	query := "SELECT table_name AS table_name, column_name AS name, collation_name AS collation," +
		" CONCAT(column_type, ' CHARACTER SET utf8mb4 COLLATE " + exact + "'," +
		" CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE ' NULL' END," +
		" CASE column_comment WHEN '' THEN '' ELSE CONCAT(' COMMENT ', QUOTE(column_comment)) END) AS mended" +
		" FROM information_schema.columns WHERE table_schema = DATABASE()" +
		" AND CONCAT(table_name, '.', column_name) IN (" + quoted(columns) + ") ORDER BY table_name, column_name"
	return func(ctx context.Context) ([]Warning, error) {
		var wrong []error
		columns, err := readTexts(ctx, s.db, query)
		for _, c := range columns {
			table, name, collation := c["table_name"], c["name"], cmp.Or(c["collation"], "none") // of no text
			if !strings.EqualFold(collation, exact) {
				wrong = append(wrong, refuse("run: ALTER TABLE "+table+" MODIFY "+name+" "+c["mended"],
					"column %s.%s has the collation %s instead of %s, so different values would count as equal",
					table, name, collation, exact))
			}
		}
		return nil, cmp.Or(err, errors.Join(wrong...))
	}
}

func (s *Store) checkEngine(tables []string) check {
	query := "SELECT table_name AS name, engine AS engine FROM information_schema.tables" +
		" WHERE table_schema = DATABASE() AND table_name IN (" + quoted(tables) + ")"
	return func(ctx context.Context) ([]Warning, error) {
		var wrong []error
		found, err := readTexts(ctx, s.db, query)
		for _, t := range found {
			if !strings.EqualFold(t["engine"], "InnoDB") {
				wrong = append(wrong, refuse("run: ALTER TABLE "+t["name"]+" ENGINE=InnoDB",
					"table %s has the engine %s, which knows no transactions", t["name"], t["engine"]))
			}
		}
		return nil, cmp.Or(err, errors.Join(wrong...))
	}
}

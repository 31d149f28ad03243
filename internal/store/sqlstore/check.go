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

// Warning is something that works, but not as well as it should.
type Warning struct {
	Code  string // for programs
	Is    string // what was found
	Means string // what follows from it
	Mend  string // what to do
}

func (w Warning) String() string { return w.Is + ": " + w.Means + "; " + w.Mend }

// Check reports whether the store can work on the database, before anything relies on it. The error is a *row.Error:
// its text is a sentence that says what is wrong, and its hint says what to do. The longest body that will be saved has
// bodyLimit bytes.
func (s *Store) Check(ctx context.Context, bodyLimit int) ([]Warning, error) {
	return all(ctx, s.dialect.checks(s, bodyLimit))
}

// CheckService checks the tables that the HTTP service alone needs: they are there, whole and writable. Its error is
// like the error of [Store.Check].
func (s *Store) CheckService(ctx context.Context) error {
	_, err := all(ctx, s.dialect.serviceChecks(s))
	return err
}

// StartCheck is one part of [Store.Check] or [Store.CheckService].
type StartCheck struct {
	Name string
	run  check
}

// The names of checks that others depend on.
const (
	CheckSchema     = "schema"     // without the tables no other check has an answer
	CheckPrivileges = "privileges" // their hint names no account
)

// check returns everything that it finds: its error may join several.
type check func(context.Context) ([]Warning, error)

// Run returns everything that is wrong. Each of the errors is a *row.Error.
func (c StartCheck) Run(ctx context.Context) ([]Warning, []error) {
	warnings, err := c.run(ctx)
	var errs []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	} else if err != nil {
		errs = []error{err}
	}
	for i := range errs {
		errs[i] = classify("check the database", errs[i])
	}
	return warnings, errs
}

// all runs the checks up to the first that fails, and returns the first of its errors.
func all(ctx context.Context, checks []StartCheck) (warnings []Warning, err error) {
	for _, check := range checks {
		found, errs := check.Run(ctx)
		if len(errs) > 0 {
			return nil, errs[0]
		}
		warnings = append(warnings, found...)
	}
	return warnings, nil
}

// isRefusal reports whether a check found something wrong, and did not just fail to look.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*row.Error](err)
	return ok
}

// refuse returns what is wrong, with a hint of what an operator does about it.
func refuse(hint, format string, args ...any) error {
	return &row.Error{Class: row.ClassOperator, Op: "check the database", Hint: hint, Err: fmt.Errorf(format, args...)}
}

// schema names the columns that the statements need. A table may have more, if a row can be inserted without them.
var schema = map[string][]string{
	table:         namesOf(tasks.columns),
	nodeTable:     namesOf(nodes.columns),
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
		var wrong []error
		for _, name := range tables {
			switch err := s.checkColumns(ctx, name); {
			case isRefusal(err):
				wrong = append(wrong, err)
			case IsDenied(err):
				return nil, refuse(grantOn(tables), "the user may not read %s: %w", name, err)
			case err != nil:
				return nil, err
			}
		}
		return nil, errors.Join(wrong...)
	}
}

func (s *Store) checkColumns(ctx context.Context, table string) error {
	var there []string
	var foreign error
	var name string
	var required bool
	err := scan(ctx, s.db, s.dialect.columns, []any{table}, func() {
		there = append(there, name)
		if required && !slices.Contains(schema[table], name) {
			foreign = refuse("give the column a default, or let it be NULL",
				"column %s.%s is not delaytask's and must be given", table, name)
		}
	}, &name, &required)
	missing := slices.DeleteFunc(slices.Clone(schema[table]), func(c string) bool { return slices.Contains(there, c) })
	switch {
	case err != nil || foreign != nil:
		return cmp.Or(err, foreign)
	case len(there) == 0:
		// A server hides a table from an account that has no privilege on it.
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
	generated := func(column string) bool { return column == keyColumn }
	written := slices.DeleteFunc(slices.Clone(schema[table]), generated)
	columns, last := strings.Join(written, ", "), written[len(written)-1]
	for _, statement := range []string{
		"UPDATE " + table + " SET " + last + " = " + last + " WHERE 1 = 0",
		"DELETE FROM " + table + " WHERE 1 = 0",
		"INSERT INTO " + table + " (" + columns + ") SELECT " + columns + " FROM " + table + " WHERE 1 = 0",
	} {
		if _, err := s.keep.execute(ctx, "check the database", statement, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkTime sends a moment to the database and back through a connection of the pool, whose settings may change times.
func (s *Store) checkTime(ctx context.Context) ([]Warning, error) {
	before, err := readClock(ctx, s.dialect, s.db)
	if err != nil {
		return nil, err
	}
	query := "SELECT CAST(CAST(? AS " + s.dialect.timeType + ") AS CHAR) AS db_time, 'x' AS db_server"
	_, back, err := readAll(ctx, s.db, query, []any{before.Time}, noTable)
	if err == nil && back.Time != before.Time {
		err = refuse("report this with the server's version and the DSN without its password",
			"a moment does not survive the way to the database and back: sent %s, got %s", before.Time, back.Time)
	}
	return nil, err
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

const synchronousFull = 2 // as PRAGMA synchronous shows it

func (s *Store) checkSQLite(ctx context.Context) ([]Warning, error) {
	var synchronous, busyTimeout int
	if err := s.db.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return nil, err
	}
	if err := s.db.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&busyTimeout); err != nil {
		return nil, err
	}
	var warnings []Warning
	if synchronous < synchronousFull {
		warnings = append(warnings, Warning{"synchronous", "synchronous is not FULL",
			"accepted tasks can be lost at a power cut", "open the file with _pragma=synchronous(FULL)"})
	}
	if busyTimeout == 0 {
		warnings = append(warnings, Warning{"busy_timeout", "busy_timeout is 0",
			"a write fails at once when another process writes", "open the file with _pragma=busy_timeout(5000)"})
	}
	return warnings, nil
}

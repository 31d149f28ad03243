package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/migrations"
)

const migrateUp = "delaytask migrate up"

// Unprepared is the report on a database without any table of delaytask.
func Unprepared() Report {
	var r Report
	r.put(sqlstore.CheckSchema, []Finding{{
		"schema", Critical, "the tables are missing", refusesToStart, migrateUp,
	}})
	return r
}

const refusesToStart = "a process refuses to start"

// meanings says what an error of a check at start means.
var meanings = map[string]string{
	"collation": "tags and keys that differ in case or accents would share tasks; " + refusesToStart,
	"engine":    "a crash or a lost connection leaves half of a change; " + refusesToStart,
}

// remakeTables corrects what mends tables that were changed by hand: migrations that are noted as applied are not run
// again.
func (r *Report) remakeTables(kind sqlstore.Kind) {
	if !slices.Contains(r.Checks, Outcome{"migrations", OK}) {
		return
	}
	for i, f := range r.Findings {
		if f.Fix == migrateUp {
			r.Findings[i].Fix = migrations.Remake(kind)
		}
	}
}

// start runs checks of a process's start, and reports whether their tables are there. Without them the checks that
// follow have no answer.
func (r *Report) start(ctx context.Context, s *Subject, prefix string, checks []sqlstore.StartCheck) (whole bool) {
	for _, c := range checks {
		found, failed := s.start(ctx, c)
		r.put(prefix+c.Name, found)
		if failed && (c.Name == sqlstore.CheckSchema || c.Name == sqlstore.CheckProduct) {
			return false
		}
	}
	return true
}

// start runs one check of a process's start. An error of the database itself fails it.
func (s *Subject) start(ctx context.Context, c sqlstore.StartCheck) (found []Finding, failed bool) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer s.looked()
	warnings, errs := c.Run(ctx)
	for _, err := range errs {
		s.readOnly = s.readOnly || errors.Is(err, sqlstore.ErrReadOnly)
		if row.ClassOf(err) != row.ClassOperator {
			return []Finding{s.unread(check{name: c.Name}, err)}, true
		}
		e, _ := errors.AsType[*row.Error](err) // of that class it is one
		if sqlstore.IsDenied(err) {
			return []Finding{s.missingPrivileges(e)}, true
		}
		meaning, known := meanings[c.Name]
		if !known {
			meaning = refusesToStart
		}
		found = append(found, Finding{c.Name, Critical, e.Err.Error(), meaning, command(e.Hint)})
	}
	for _, w := range warnings {
		found = append(found, Finding{w.Code, Warning, w.Is, w.Means, s.mend(w)})
	}
	return found, len(errs) > 0
}

// command drops the words in front of a statement.
func command(hint string) string {
	if hint == sqlstore.Migrate { // which names a setting of programs, too
		return migrateUp
	}
	return strings.TrimPrefix(hint, "run: ")
}

// mend is the statement for a setting of the server, and otherwise what the warning says.
func (s *Subject) mend(w sqlstore.Warning) string {
	switch w.Code {
	case "innodb_flush_log_at_trx_commit", "sync_binlog":
		return s.set(w.Code, "1")
	case "max_allowed_packet":
		return s.set(w.Code, "16777216")
	}
	return command(w.Mend)
}

// missingPrivileges names the statements for all tables: granting twice changes nothing.
func (s *Subject) missingPrivileges(e *row.Error) Finding {
	var grants []string
	for _, table := range sqlstore.Tables() {
		grants = append(grants, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON `%s`.%s TO %s;",
			s.account.Database, table, s.account.Grantee()))
	}
	return Finding{"privileges", Critical, e.Err.Error(), refusesToStart, strings.Join(grants, "\n")}
}

func checkMigrations(ctx context.Context, s *Subject) ([]Finding, error) {
	states, err := migrations.Status(ctx, s.DB, s.Kind)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, m := range states {
		if !m.Applied {
			missing = append(missing, m.Name)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return []Finding{{"migrations", Warning, "migrations are not applied, or not noted: " + few(missing),
		"the tables may lack what this version expects; tables that were made by hand are only not noted", migrateUp,
	}}, nil
}

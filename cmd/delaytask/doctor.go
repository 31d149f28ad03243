package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/doctor"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

func (a *app) doctorCommand() *cobra.Command {
	var failOn string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the database, its settings and what is stuck",
		Long: `Examine the database: schema, privileges, durability, isolation, connections, clocks, the indexes
that statements really use, what InnoDB keeps for old transactions, tasks that are stuck or that no process
serves, the purge, and receivers that fail. It changes nothing, reads little of a large table, and ends within
seconds. It takes limits and retentions from the settings that it is started with. It asks the database, not the
service: there is no such call of the HTTP API.

Each finding has a code, a severity (info, warning, critical), what it means, and the command or
statement that mends it. Exit codes: 0 nothing as bad as --fail-on was found, 1 something was, 2
wrong use, or the database cannot be reached.`,
		Example: `  delaytask doctor
  delaytask doctor --fail-on critical
  delaytask doctor --json | jq '.items[] | select(.severity != "info") | .fix'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			severity, known := doctor.ParseSeverity(failOn)
			if !known || severity == doctor.OK {
				return misusedf("--fail-on %q: want info, warning or critical", failOn)
			}
			report, err := a.examine(cmd)
			if err != nil {
				return err
			}
			if err := a.printReport(report, sameFlag(cmd)); err != nil {
				return err
			}
			if report.Worst() >= severity {
				return errFindings
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&failOn, "fail-on", "warning", "exit with 1 from this severity on: info, warning or critical")
	values(cmd, "fail-on", "info", "warning", "critical")
	return a.withJSON(cmd)
}

func (a *app) examine(cmd *cobra.Command) (report doctor.Report, err error) {
	c, err := a.settings(cmd)
	if err != nil {
		return report, err
	}
	target, err := sqlstore.ParseDSN(c.DSN)
	if err != nil {
		return report, misused(err)
	}
	ctx := cmd.Context()
	switch _, err := embeddedState(ctx, target, reads); {
	case errors.Is(err, errNoTables):
		return doctor.Unprepared(), nil // without opening a file that may be another program's
	case err != nil:
		return report, unreachable{err}
	}
	defer a.working()()
	const patience = 3 * time.Second
	reached, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	db, kind, err := sqlstore.Connect(reached, c.DSN)
	if err != nil && reached.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %v: %w; look at the server, and at what is between", patience, err)
	}
	if err != nil {
		return report, unreachable{err}
	}
	report = a.examineDatabase(ctx, db, kind, c)
	if ctx.Err() != nil {
		err = context.Cause(ctx) // what was interrupted is no finding
	}
	return report, errors.Join(err, db.Close())
}

func (a *app) examineDatabase(
	ctx context.Context, db *sqlx.DB, kind sqlstore.Kind, c config.Config,
) doctor.Report {
	store := sqlstore.New(db, kind)
	defer store.Close(context.WithoutCancel(ctx)) // its connections end with the pool
	subject := doctor.Subject{
		Store: store, DB: db.DB, Kind: kind, BodyLimit: c.BodyLimit,
		Retention: map[row.Status]time.Duration{
			row.Completed: c.Retention.Completed, row.Failed: c.Retention.Failed, row.Cancelled: c.Retention.Cancelled,
		},
		Progress: func(done, total int) { a.busy.counts(done, total, "checks") },
	}
	for tag := range c.Receivers {
		subject.Receivers = append(subject.Receivers, tag)
	}
	return doctor.Examine(ctx, subject)
}

// sameFlag is the flag that names the database for this command, "" where none does.
func sameFlag(cmd *cobra.Command) string {
	for _, flag := range []string{"dsn", "config"} {
		if cmd.Flags().Changed(flag) {
			return "--" + flag
		}
	}
	return ""
}

// printReport says which flag the commands that it prints must be given, too.
func (a *app) printReport(r doctor.Report, flag string) error {
	if a.json {
		return a.printJSON(r)
	}
	for _, f := range r.Findings {
		severity := a.screen.paint(fmt.Sprintf("%-8s", f.Severity), styleOfSeverity(f.Severity))
		if err := a.painted(severity); err != nil {
			return err
		}
		fix := strings.ReplaceAll(f.Fix, "\n", "\n            ")
		if err := a.printf("  %s: %s\n          so: %s\n          fix: %s\n\n", f.Code, oneLine(f.Title),
			oneLine(f.Meaning), fix); err != nil {
			return err
		}
	}
	isCommand := func(f doctor.Finding) bool { return strings.Contains(f.Fix, "delaytask ") }
	hint := ""
	if flag != "" && slices.ContainsFunc(r.Findings, isCommand) {
		hint = " Give the same " + flag + " to the commands of delaytask."
	}
	return a.printf("%s in %s.%s\n", counted(len(r.Findings), "finding"), counted(len(r.Checks), "check"), hint)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/migrations"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create, upgrade and inspect the tables",
		Example: `  delaytask migrate up --dsn 'user:password@tcp(db:3306)/shop'
  delaytask migrate status
  delaytask migrate sql --for mysql > delaytask.sql`,
	}
	cmd.AddCommand(a.migrateUpCommand(), a.migrateDownCommand(), a.migrateStatusCommand(), a.migrateSQLCommand())
	return cmd
}

func (a *app) migrateUpCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "up",
		Short: "Bring the tables up to date",
		Long: "Bring the tables up to date. Any number of processes may do so at once, and doing it again " +
			"changes nothing.",
		Example: "  delaytask migrate up --dsn 'user:password@tcp(db:3306)/shop'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onDatabase(cmd, creates, func(ctx context.Context, db *sqlx.DB, kind sqlstore.Kind) error {
				before, err := migrations.Status(ctx, db.DB, kind)
				if err != nil {
					return err
				}
				missing := func(s migrations.State) bool { return !s.Applied }
				if err := migrations.UpEach(ctx, db.DB, kind, a.migrationsOf(before)); err != nil {
					return err
				}
				if !slices.ContainsFunc(before, missing) {
					if err := whole(ctx, db, kind); err != nil {
						return err
					}
				}
				return a.printMigrated(before, missing, "applied", "The tables are up to date.")
			})
		},
	})
}

// whole returns an error when a table or a column of an applied migration was removed by hand.
func whole(ctx context.Context, db *sqlx.DB, kind sqlstore.Kind) error {
	s := sqlstore.New(db, kind)
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }() // closes idle connections
	inspect := sqlstore.Inspect(s)
	for _, c := range slices.Concat(inspect.StartChecks(0), inspect.ServiceChecks()) {
		if c.Name != sqlstore.CheckSchema {
			continue
		}
		_, errs := c.Run(ctx)
		for _, err := range errs {
			if e, ok := errors.AsType[*row.Error](err); ok && e.Hint == sqlstore.Migrate {
				return fmt.Errorf("all migrations are noted as applied, but %w; %s", e.Err, migrations.Remake(kind))
			}
		}
	}
	return nil
}

// migrationsOf shows how many of the missing migrations are applied, and returns what counts one more.
func (a *app) migrationsOf(before []migrations.State) (applied func()) {
	done, missing := 0, 0
	for _, s := range before {
		if !s.Applied {
			missing++
		}
	}
	a.busy.counts(done, missing, "migrations")
	return func() {
		done++
		a.busy.counts(done, missing, "migrations")
	}
}

func (a *app) migrateDownCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take back the newest migration",
		Long: `Take back the newest migration, and with it everything that is stored in the tables it drops. Stop all
services first. On a terminal it asks.`,
		Example: "  delaytask migrate down --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes && !a.interactive {
				return misusedf("there is nobody to ask whether to take back a migration with all that it stores: " +
					"add --yes")
			}
			return a.onDatabase(cmd, changes, func(ctx context.Context, db *sqlx.DB, kind sqlstore.Kind) error {
				before, err := migrations.Status(ctx, db.DB, kind)
				if err != nil {
					return err
				}
				newest := newestApplied(before)
				if newest.Version != 0 && !yes {
					if err := a.confirm(ctx, "Take back "+newest.Name+" and lose what it stores?"); err != nil {
						return err
					}
				}
				if err := migrations.Down(ctx, db.DB, kind); err != nil {
					return err
				}
				takenBack := func(s migrations.State) bool { return s.Applied && s == newest }
				return a.printMigrated(before, takenBack, "taken back", "There is nothing to take back.")
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return a.withJSON(cmd)
}

func (a *app) migrateStatusCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     "status",
		Short:   "Show which migrations are applied",
		Long:    "Show which migrations are applied. It changes nothing.",
		Example: "  delaytask migrate status --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onDatabase(cmd, reads, func(ctx context.Context, db *sqlx.DB, kind sqlstore.Kind) error {
				states, err := migrations.Status(ctx, db.DB, kind)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(list[migrationView]{Items: viewsOf(states, viewOfMigration)})
				}
				t := a.newTable("VERSION", "NAME", "STATE").mayCut(1)
				for _, s := range states {
					state := "pending"
					if s.Applied {
						state = "applied"
					}
					t.row(strconv.FormatInt(s.Version, 10), s.Name, state)
				}
				return t.flush()
			})
		},
	})
}

func (a *app) migrateSQLCommand() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the statements that create the tables",
		Long: `Print the statements that create the tables, for a DBA to read or to run in a client. Running them twice
is harmless, and migrate up afterwards only takes note of them. No connection is made.`,
		Example: "  delaytask migrate sql --for mysql > delaytask.sql",
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := a.kindOf(cmd, kind)
			if err != nil {
				return err
			}
			return a.say(struct {
				Kind string `json:"kind"`
				SQL  string `json:"sql"`
			}{of.String(), migrations.SQL(of)}, "%s", migrations.SQL(of))
		},
	}
	cmd.Flags().StringVar(&kind, "for", "", "mysql or sqlite (default: what --dsn names)")
	values(cmd, "for", "mysql", "sqlite")
	return a.withJSON(cmd)
}

// kindOf is the kind of database of the flag, or of the settings.
func (a *app) kindOf(cmd *cobra.Command, named string) (sqlstore.Kind, error) {
	switch named {
	case sqlstore.MySQL.String():
		return sqlstore.MySQL, nil
	case sqlstore.SQLite.String():
		return sqlstore.SQLite, nil
	case "":
		c, err := a.settings(cmd)
		if err != nil {
			return 0, err
		}
		target, err := sqlstore.ParseDSN(c.DSN)
		if err != nil {
			return 0, misused(err)
		}
		return target.Kind(), nil
	default:
		return 0, misusedf("--for %q: want mysql or sqlite", named)
	}
}

// onDatabase calls f with a connection and no scheduler: the tables may be missing.
func (a *app) onDatabase(
	cmd *cobra.Command, u use, f func(context.Context, *sqlx.DB, sqlstore.Kind) error,
) error {
	c, err := a.settings(cmd)
	if err != nil {
		return err
	}
	if err := a.admit(cmd.Context(), c, u); err != nil {
		return err
	}
	defer a.working()()
	db, kind, err := sqlstore.Connect(cmd.Context(), c.DSN)
	if err != nil {
		return err
	}
	if u != reads && !c.OnReplica {
		err = sqlstore.Inspect(sqlstore.New(db, kind)).RefuseReplica(cmd.Context(), cluster.IsAlive)
	}
	if err == nil {
		err = f(cmd.Context(), db, kind)
	}
	if closed := db.Close(); err == nil {
		err = closed
	}
	return err
}

type migrationView struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
}

func viewOfMigration(s *migrations.State) migrationView { return migrationView(*s) }

func newestApplied(states []migrations.State) (newest migrations.State) {
	for _, s := range states {
		if s.Applied {
			newest = s
		}
	}
	return newest
}

// printMigrated prints the changed migrations, or that there was none.
func (a *app) printMigrated(before []migrations.State, changed func(migrations.State) bool, past, none string) error {
	views := []migrationView{} // [] in JSON when nothing changed
	for _, s := range before {
		if changed(s) {
			s.Applied = !s.Applied
			views = append(views, migrationView(s))
		}
	}
	if a.json {
		return a.printJSON(list[migrationView]{Items: views})
	}
	if len(views) == 0 {
		return a.printf("%s\n", none)
	}
	for _, v := range views {
		if err := a.printf("%s %s\n", past, v.Name); err != nil {
			return err
		}
	}
	return nil
}

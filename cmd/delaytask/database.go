package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/core"
	said "github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/scheduler"
)

// use is the access of a command to its database.
type use int

const (
	reads use = iota // the default database will do
	// changes requires a database that is named, and prints which it is: a typing error must not change another one.
	changes
	creates // as changes, and a missing embedded database is created
)

// onTasks calls f with a scheduler on the database of the settings.
func (a *app) onTasks(cmd *cobra.Command, u use, f func(context.Context, *scheduler.Scheduler) error) error {
	c, err := a.settings(cmd)
	if err != nil {
		return err
	}
	return a.onScheduler(cmd.Context(), c, u, f)
}

// onScheduler calls f with a scheduler that is never started: it saves and changes tasks, and runs none.
func (a *app) onScheduler(
	ctx context.Context, c config.Config, u use, f func(context.Context, *scheduler.Scheduler) error,
) error {
	if err := a.admit(ctx, c, u); err != nil {
		return err
	}
	defer a.working()()
	cfg := a.schedulerConfig(c)
	cfg.ReadOnly = u == reads
	s, err := scheduler.Open(ctx, c.DSN, cfg)
	if err != nil {
		return err
	}
	defer a.close(ctx, s)
	if st, ok := store.Under(core.Of(s).Store()).(*sqlstore.Store); ok && u == reads {
		a.noteReplica(ctx, st)
	}
	acts := audit.New(audit.Config{Store: core.Of(s).Store(), Log: a.maskedLogger(c.Log)})
	a.operator = operate.New(operate.Config{Core: core.Of(s), Audit: acts, Redactor: a.redactor})
	return f(ctx, s)
}

// noteReplica says that what is read may be behind, where the server applies the changes of another one, or takes no
// writes. An account that may not ask is not told.
func (a *app) noteReplica(ctx context.Context, s *sqlstore.Store) {
	ask := sqlstore.Inspect(s)
	if !ask.HasRowLocks() {
		return
	}
	source, _, untold := ask.ReplicaOf(ctx, cluster.IsAlive)
	readOnly, err := ask.ReadOnly(ctx)
	what := "read-only"
	switch {
	case untold == nil && source != "":
		what = "a replica of " + source
	case err != nil || !readOnly:
		return
	}
	a.note("The server is %s: what it shows may be behind. Change tasks on the primary.\n", what)
}

func (a *app) close(ctx context.Context, s *scheduler.Scheduler) {
	if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
		a.note("delaytask: closing the database: %s\n", sentence(err))
	}
}

// admit refuses a database that does not fit the use, before it is opened: opening an embedded one creates and migrates
// it. It prints which database will be changed.
func (a *app) admit(ctx context.Context, c config.Config, u use) error {
	target, err := sqlstore.ParseDSN(c.DSN)
	if err != nil {
		return misused(err)
	}
	if u != reads && c.DSNFrom == "" {
		return misusedf("say which database, by --dsn, DELAYTASK_DSN or dsn in config.yaml; the one of serve without "+
			"settings is --dsn %s", sqlstore.DefaultDSN)
	}
	state, err := embeddedState(ctx, target, u)
	if err != nil {
		return err
	}
	if u != reads && !a.json {
		a.note("Database: %s%s (%s)\n", target, state, c.DSNFrom)
	}
	return nil
}

// embeddedState refuses a file that is missing or without our tables, unless the command may create them. It reports
// whether the file is new.
func embeddedState(ctx context.Context, target sqlstore.Target, u use) (state string, err error) {
	file, embedded := strings.CutPrefix(target.Redacted(), "sqlite:")
	if !embedded {
		return "", nil
	}
	_, err = os.Stat(file)
	missing, create := errors.Is(err, fs.ErrNotExist), said.Command("migrate up", "dsn", target.Redacted())
	switch {
	case missing && u == creates:
		return ", a new file", nil
	case missing:
		return "", fmt.Errorf("%w %s; name another with --dsn, or create it with: %s", errNoDatabase, file, create)
	case u == creates:
		return "", nil
	}
	prepared, err := target.Prepared(ctx)
	if err == nil && !prepared {
		err = fmt.Errorf("%w in %s, which has no table of ours; name another with --dsn, or create the tables with: %s",
			errNoTables, file, create)
	}
	return "", err
}

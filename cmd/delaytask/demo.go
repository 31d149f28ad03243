package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// demoLimit is far above what the demo takes: beyond it the demo has failed.
const demoLimit = 40 * time.Second

func (a *app) demoCommand() *cobra.Command {
	var pages bool
	var port int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch tasks being saved, run, retried and rescued (about 10 seconds)",
		Long: `Watch a small service at work: it saves tasks that are due within the next seconds, and runs each at its
time. A schedule ticks twice. One task fails twice and is retried, one is cancelled, one is moved, one comes from plain
SQL, and one loses its process, which is killed in the middle of it. In the end the demo reads the rows back and checks that
everything happened as it said.

It needs nothing: the database is a file in a temporary folder. With --dsn it uses that database, whose tables must be there;
its tasks have tags of their own and are deleted at the end. Settings files and DELAYTASK_DSN are not read.

With --ui it serves the dashboard instead, of a shop that saves tasks and runs them, until Ctrl-C. The database is a temporary
file with an hour of history that is made up.`,
		Example: `  delaytask demo
  delaytask demo --ui
  delaytask demo --json
  delaytask demo --dsn 'user:password@tcp(127.0.0.1:3306)/test'`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pages {
				return a.demoPages(cmd, port)
			}
			if cmd.Flags().Changed("port") {
				return misusedf("--port is that of the dashboard: add --ui")
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), demoLimit, errDemoSlow)
			defer cancel()
			dsn, prefix, cleanup, err := demoPlace(cmd)
			if err != nil {
				return err
			}
			summary, err := a.perform(ctx, dsn, prefix)
			return errors.Join(a.demoResult(summary, err), cleanup())
		},
	}
	cmd.Flags().BoolVar(&pages, "ui", false, "serve the dashboard of a shop at work, until Ctrl-C")
	cmd.Flags().IntVar(&port, "port", 0, "with --ui: listen on this port of loopback (default a free one)")
	cmd.AddCommand(a.workerCommand())
	return a.withJSON(cmd)
}

var errDemoSlow = fmt.Errorf("the demo was not done after %v; is the machine very busy?", demoLimit)

// demoPlace returns the database of the demo, and a prefix of its tags: on a user's database they must not meet others.
func demoPlace(cmd *cobra.Command) (dsn, prefix string, cleanup func() error, err error) {
	if flag := cmd.Flags().Lookup("dsn"); flag.Changed {
		_, err := sqlstore.ParseDSN(flag.Value.String())
		return flag.Value.String(), fmt.Sprintf("demo-%x:", time.Now().UnixNano()), func() error { return nil }, err
	}
	dir, err := os.MkdirTemp("", "delaytask-demo-")
	if err != nil {
		return "", "", nil, fmt.Errorf("make a folder for the demo's database: %w", err)
	}
	return "sqlite:" + filepath.Join(dir, "demo.db"), "", func() error { return os.RemoveAll(dir) }, nil
}

func (a *app) demoResult(s *demoSummary, err error) error {
	if err != nil {
		return fmt.Errorf("the demo did not end as it should: %w", err)
	}
	if a.json {
		err = a.printJSON(s)
	} else {
		err = s.print(a.stdout, a.screen)
	}
	if err == nil && len(s.Wrong) > 0 {
		err = fmt.Errorf("the demo did not end as it should: %s", s.Wrong[0])
	}
	return err
}

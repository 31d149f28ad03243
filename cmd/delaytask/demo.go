package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// demoLimit is far above what the demo takes: beyond it the demo has failed.
const demoLimit = 40 * time.Second

func (a *app) demoCommand() *cobra.Command {
	var pages bool
	var port int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch tasks being saved, run, retried and rescued (about 10 seconds)",
		Long: `Watch a small service at work: it saves tasks that are due within the next seconds, and runs each at
its time. A schedule ticks twice. One task fails twice and is retried, one is cancelled, one is moved, one comes from
plain SQL, and one loses its process, which is killed in the middle of it. In the end the demo reads the rows back
and checks that everything happened as it said.

It needs nothing: the database is a file in a temporary folder. Settings files and DELAYTASK_DSN are not read.

With --ui it serves the dashboard instead, of a shop that saves tasks and runs them, until
Ctrl-C. An hour of history is made up.`,
		Example: `  delaytask demo
  delaytask demo --ui
  delaytask demo --json`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("dsn") {
				return misusedf("the demo takes a database of its own: leave out --dsn")
			}
			if cmd.Flags().Changed("port") && !pages {
				return misusedf("--port is for the dashboard: add --ui")
			}
			dir, err := os.MkdirTemp("", "delaytask-demo-")
			if err != nil {
				return fmt.Errorf("make a folder for the demo's database: %w", err)
			}
			perform := a.perform
			if pages {
				perform = func(ctx context.Context, dsn string) error { return a.demoPages(ctx, dsn, port) }
			}
			return errors.Join(perform(cmd.Context(), "sqlite:"+filepath.Join(dir, "demo.db")), os.RemoveAll(dir))
		},
	}
	cmd.Flags().BoolVar(&pages, "ui", false, "serve the dashboard of a shop at work, until Ctrl-C")
	cmd.Flags().IntVar(&port, "port", 0, "with --ui: listen on this port of loopback (default a free one)")
	cmd.AddCommand(a.workerCommand())
	return a.withJSON(cmd)
}

var errDemoSlow = fmt.Errorf("the demo was not done after %v; is the machine very busy?", demoLimit)

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/scheduler"
)

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

// perform plays, and prints what the rows say in the end.
func (a *app) perform(ctx context.Context, dsn string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errDemoSlow)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("the demo did not end as it should: %w", err)
		}
	}()
	p := &play{narrator: narrator{a}, dsn: dsn, ids: map[string][]int64{}, starts: map[string][]event{}}
	p.operator, err = scheduler.Open(ctx, dsn,
		scheduler.Config{Logger: a.logger(config.Log{Level: "error"}), NodeName: commandNode})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.operator.Stop(context.WithoutCancel(ctx))) }()
	p.say(words(plain,
		"A task is a row in a table. A service saves it, and runs it when it is due, to the millisecond."))
	p.say(words(plain, "The table is in %s: nothing but this program is needed.", dsn))
	if err := errors.Join(p.run(ctx), p.stop()); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return p.conclude(ctx)
}

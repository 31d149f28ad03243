package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	groupStart   = "start"
	groupTasks   = "tasks"
	groupOperate = "operate"
)

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "delaytask",
		Short: "Durable, punctual delayed tasks on MySQL or SQLite",
		Long: `delaytask runs a piece of work later: durably, and on time, on the database that a service already has.

A task is a row. This command creates the table, saves tasks, and shows and changes them;
services that import the Go package run them.

The database is named by --dsn, or else by DELAYTASK_DSN, or else by dsn in config.yaml. A command that writes wants one
to be named, and says on standard error which it uses. A command that reads takes sqlite:delaytask.db otherwise, if it
is there, and so do serve, which creates it, and bench, which works beside it. DELAYTASK_URL and DELAYTASK_TOKEN are for
clients of the service: no command on a database reads them. Only health asks a service: the one that --url names, or
else DELAYTASK_URL, or else the settings.

A time is written as 2027-01-31, '2027-01-31 08:30', 08:30 (today), RFC 3339, or a number of seconds, milliseconds or
microseconds since 1970. Without a zone it is in the zone of the machine, which TZ sets; a time of a schedule is in the
zone of the schedule. Times are shown likewise; JSON has them in UTC.

With --json a command prints JSON, and an error as JSON on standard error: {"error":{"code":"not_found","message":"…"}}.
Exit codes: 0 done, 1 failed, 2 wrong use.`,
		Example: `  delaytask demo
  delaytask migrate up
  delaytask save order.close '{"order":42}' --delay 30m
  delaytask list --tag order.close --status pending
  delaytask explain 911619959676096449`,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = scheduler.Version // gives it --version
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if wrong, ok := errors.AsType[*usageError](err); ok {
			return wrong // which names the flag
		}
		return misused(err)
	})

	flags := root.PersistentFlags()
	config.AddFlags(flags, "dsn")
	flags.Lookup("dsn").Usage = "database: sqlite:PATH, user:password@tcp(host:3306)/name or mysql://…; also " +
		"DELAYTASK_DSN"
	flags.StringVar(&a.configPath, "config", "",
		"settings file, also DELAYTASK_CONFIG (default config.yaml if there is one)")
	_ = root.MarkPersistentFlagFilename("config", "yaml", "yml") // the flag was added in the line above

	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "To begin:"},
		&cobra.Group{ID: groupTasks, Title: "Tasks:"},
		&cobra.Group{ID: groupOperate, Title: "Operation:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupStart, a.demoCommand(), a.serveCommand(), a.migrateCommand())
	add(groupTasks, a.saveCommand(), a.getCommand(), a.listCommand(), a.explainCommand(), a.cancelCommand(),
		a.rescheduleCommand(), a.retryCommand(), a.scheduleCommand())
	add(groupOperate, a.overviewCommand(), a.pauseCommand(), a.resumeCommand(), a.statsCommand(), a.forecastCommand(),
		a.failuresCommand(), a.nodesCommand(), a.doctorCommand(), a.benchCommand(), a.healthCommand(), a.tokenCommand(),
		a.auditCommand(), a.bulkCommand(), a.configCommand())
	root.AddCommand(a.versionCommand())
	strictly(root)
	return root
}

// strictly gives all commands their rules, also those that cobra adds: a group asks for one of its commands, and a
// command whose use names no arguments takes none.
func strictly(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = func(_ *cobra.Command, args []string) error {
				found, rest, _ := root.Find(args) // its error would be about the rest
				return noSuchCommand(found, rest)
			}
			continue
		}
		takeNoMore(c)
	}
}

func takeNoMore(c *cobra.Command) {
	switch {
	case c.HasSubCommands() && c.RunE == nil:
		c.Args, c.RunE = oneOf, oneOf
	case !strings.Contains(c.Use, " "):
		c.Args = wanted(0, 0, "no arguments")
	}
	for _, sub := range c.Commands() {
		takeNoMore(sub)
	}
}

// noSuchCommand is the error of an unknown command.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return misusedf("there is no command %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return misusedf("there is no command %q", args[0])
}

// oneOf is the error of a command that only groups others.
func oneOf(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return noSuchCommand(cmd, args)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return misusedf("say what to do: %s", strings.Join(names, ", "))
}

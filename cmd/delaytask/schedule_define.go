package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) scheduleCreateCommand() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "create NAME LINE...",
		Short: "Create a schedule and show its next ticks",
		Long: `Create a schedule: a task of --tag is saved at each tick, whichever processes live by then. It runs when
one of the lines says so; delaytask schedule preview --help explains them, and --dst. A name that exists is refused.

--overlap says what becomes of a tick that falls due while a run is open:
  skip       it does not run
  queue_one  one run follows the open one, for the latest tick
  replace    the open run is cancelled, and the tick runs
  allow      it runs beside the open ones, up to --max-open
--missed says what becomes of ticks that no process has decided in time, as after an outage:
  once       the latest runs now
  skip       the latest runs if it is at most a minute late
  all        each runs, the oldest first; of more than 1,000 the newest 1,000`,
		Example: `  delaytask schedule create report.daily '30 2 * * *' --zone Europe/Berlin --tag report.build ` +
			`--body '{"kind":"daily"}'
  delaytask schedule create cache.warm '@every 5m' --tag cache.warm --missed skip --jitter 1m --pause-after 3
  delaytask schedule create mail.digest '0 8 * * MON-FRI' --tag mail.send --body @digest.json --start-within 2h --json`,
		Args: wanted(2, -1, "a name, and "+linesWanted),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.settings(cmd)
			if err != nil {
				return err
			}
			if f.tag == "" {
				return misusedf("say which tag the runs have, by --tag")
			}
			tag := c.Tags[f.tag]
			d := definition{Schedule: delaytask.Schedule{TTR: tag.TTR, MaxAttempts: tag.MaxAttempts}}
			if err := f.apply(cmd, a, &d, args[1:]); err != nil {
				return err
			}
			if err := check(args[0], &d, args[1:]); err != nil {
				return err
			}
			return a.onScheduler(cmd.Context(), c, creates, func(ctx context.Context, s *scheduler.Scheduler) error {
				d.given = append(d.given, delaytask.WithIfNew())
				return a.saveSchedule(ctx, s, args[0], "Created", &d)
			})
		},
	}
	f.addFlags(cmd)
	return a.withJSON(cmd)
}

// check refuses what can be refused before a database is created or read.
func check(name string, d *definition, args []string) error {
	_, err := request.NewSchedule(name, d.Spec, d.Tag, d.Body, request.Limits{Body: math.MaxInt}, d.options()...)
	if err != nil {
		return err
	}
	_, _, err = scheduler.Preview(d.Spec, time.Now(), 1)
	return pointed(err, d.Spec.Lines, args)
}

func (a *app) scheduleUpdateCommand() *cobra.Command {
	var f scheduleFlags
	var version int64
	cmd := &cobra.Command{
		Use:   "update NAME [LINE...]",
		Short: "Change a schedule and show its next ticks",
		Long: `Change what the lines and the flags say of a schedule; all else stays. Lines replace all
that there are, --except without lines adds to them, and --header replaces headers of the same names. A run
that has not begun is planted anew, and nothing that was due before runs at once. A schedule that a program
declares is refused: change the program.`,
		Example: `  delaytask schedule update report.daily '30 4 * * *'
  delaytask schedule update report.daily --except 2027-12-24 --start-within 6h`,
		Args: wanted(1, -1, "the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onTasks(cmd, changes, func(ctx context.Context, s *scheduler.Scheduler) error {
				old, err := s.GetSchedule(ctx, args[0])
				if err != nil {
					return err
				}
				d := definition{Schedule: old}
				if err := f.apply(cmd, a, &d, args[1:]); err != nil {
					return err
				}
				if err := check(args[0], &d, args[1:]); err != nil {
					return err
				}
				if !cmd.Flags().Changed("if-version") {
					version = old.Version // what another has saved meanwhile is not undone
				}
				d.given = append(d.given, delaytask.WithIfVersion(version))
				return a.saveSchedule(ctx, s, args[0], "Updated", &d)
			})
		},
	}
	f.addFlags(cmd)
	cmd.Flags().Int64Var(&version, "if-version", 0,
		"only if no other definition was saved since this version, which show shows (default: since it was read)")
	return a.withJSON(cmd)
}

// shownTicks is how many ticks a definition shows.
const shownTicks = 3

func (a *app) saveSchedule(
	ctx context.Context, s *scheduler.Scheduler, name, done string, d *definition,
) error {
	stored, err := a.operator.SaveSchedule(ctx, by(), name, d.Spec, d.Tag, d.Body, d.options()...)
	if err != nil {
		return err
	}
	// The stored spec names a zone where none was given, which is worth a warning.
	as := stored
	as.Spec = d.Spec
	ticks, warnings, err := a.view().Coming(ctx, &as, shownTicks)
	if err != nil {
		return err
	}
	if a.json {
		shown := a.view().SeenSchedule(&stored)
		return a.printJSON(struct {
			scheduleView
			Ticks    []wire.Tick `json:"ticks"`
			Warnings []string    `json:"warnings"`
		}{scheduleViewOf(&shown), wire.FromTicks(ticks, nil).Ticks, append([]string{}, warnings...)})
	}
	note := ""
	if stored.State != delaytask.ScheduleActive {
		note = fmt.Sprintf(" It is %s.", stored.State)
	}
	if err := a.printf("%s %s.%s Its next ticks:\n", done, stored.Name, note); err != nil {
		return err
	}
	return a.printTicks(ticks, warnings, s.Now(), shownTicks)
}

// scheduleView is a schedule in JSON as in the HTTP API, except that the body is always the stored text.
type scheduleView struct {
	wire.Schedule
	Body string `json:"body"`
}

func scheduleViewOf(s *operate.Schedule) scheduleView {
	v := scheduleView{Schedule: wire.FromSchedule(&s.Schedule), Body: string(s.Body)}
	v.Schedule.Body, v.Redacted = wire.Body{}, s.Redacted
	return v
}

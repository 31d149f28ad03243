package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

// scheduleChanged is what a change of a schedule answers.
type scheduleChanged struct {
	Name     string    `json:"name"`
	Tick     wire.Time `json:"tick,omitzero"`     // that was skipped
	TaskID   wire.ID   `json:"task_id,omitzero"`  // of the run that was triggered
	Backfill string    `json:"backfill,omitzero"` // name of its schedule
}

// onSchedule completes a command that does something to one schedule, and prints the sentence that change returns.
func (a *app) onSchedule(
	cmd *cobra.Command,
	change func(ctx context.Context, s *scheduler.Scheduler, to *scheduleChanged) (string, error),
) *cobra.Command {
	cmd.Args = wanted(1, 1, "the name of a schedule")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.onTasks(cmd, changes, func(ctx context.Context, s *scheduler.Scheduler) error {
			to := scheduleChanged{Name: args[0]}
			sentence, err := change(ctx, s, &to)
			if err != nil {
				return err
			}
			return a.say(to, "%s\n", sentence)
		})
	}
	return a.withJSON(cmd)
}

// nextOf says when a schedule goes on.
func nextOf(ctx context.Context, s *scheduler.Scheduler, done, name string) (string, error) {
	is, err := s.GetSchedule(ctx, name)
	if err != nil || is.NextDue.IsZero() {
		return fmt.Sprintf("%s %s.", done, name), err
	}
	return fmt.Sprintf("%s %s. It runs next at %s, in %s.", done, name, momentIn(is.NextDue, zoneOf(is.Spec.Zone)),
		away(is.NextDue.Sub(s.Now()))), nil
}

// zoneOfSchedule returns the zone that the times of a schedule are read and shown in.
func (a *app) zoneOfSchedule(ctx context.Context, name string) (*time.Location, error) {
	is, err := a.view().Schedule(ctx, name)
	return zoneOf(is.Spec.Zone), err
}

func (a *app) schedulePauseCommand() *cobra.Command {
	var reason string
	cmd := a.onSchedule(&cobra.Command{
		Use:   "pause NAME",
		Short: "Pause a schedule",
		Long: `Pause a schedule until it is resumed. A run that has not begun is withdrawn, and one that executes goes
on. Ticks of the pause do not count as missed.`,
		Example: "  delaytask schedule pause report.daily --reason 'the warehouse moves'",
	}, func(ctx context.Context, _ *scheduler.Scheduler, to *scheduleChanged) (string, error) {
		err := a.operator.PauseSchedule(ctx, by(), to.Name, delaytask.Reason(reason))
		return fmt.Sprintf("Paused %s.", to.Name), err
	})
	cmd.Flags().StringVar(&reason, "reason", "", "kept, and shown to people")
	return cmd
}

func (a *app) scheduleResumeCommand() *cobra.Command {
	return a.onSchedule(&cobra.Command{
		Use:     "resume NAME",
		Short:   "End the pause of a schedule",
		Long:    "End the pause of a schedule. It goes on with the first tick that is to come.",
		Example: "  delaytask schedule resume report.daily",
	}, func(ctx context.Context, s *scheduler.Scheduler, to *scheduleChanged) (string, error) {
		if err := a.operator.ResumeSchedule(ctx, by(), to.Name); err != nil {
			return "", err
		}
		return nextOf(ctx, s, "Resumed", to.Name)
	})
}

func (a *app) scheduleResetCommand() *cobra.Command {
	return a.onSchedule(&cobra.Command{
		Use:   "reset NAME",
		Short: "Set a schedule to its first tick that is to come",
		Long: `Set a schedule to its first tick that is to come, whatever was decided. It is for a database whose clock
was ahead: ticks that are decided do not run again by themselves.`,
		Example: "  delaytask schedule reset report.daily",
	}, func(ctx context.Context, s *scheduler.Scheduler, to *scheduleChanged) (string, error) {
		if err := a.operator.ResetSchedule(ctx, by(), to.Name); err != nil {
			return "", err
		}
		return nextOf(ctx, s, "Reset", to.Name)
	})
}

func (a *app) scheduleSkipCommand() *cobra.Command {
	return a.onSchedule(&cobra.Command{
		Use:     "skip NAME",
		Short:   "Leave out the next tick of a schedule",
		Long:    "Decide that the next tick of a schedule does not run, and print it.",
		Example: "  delaytask schedule skip report.daily",
	}, func(ctx context.Context, _ *scheduler.Scheduler, to *scheduleChanged) (string, error) {
		zone, err := a.zoneOfSchedule(ctx, to.Name)
		if err != nil {
			return "", err
		}
		tick, err := a.operator.SkipTick(ctx, by(), to.Name)
		to.Tick = wire.Time(tick)
		return fmt.Sprintf("The tick of %s does not run.", momentIn(tick, zone)), err
	})
}

func (a *app) scheduleTriggerCommand() *cobra.Command {
	var beside bool
	cmd := a.onSchedule(&cobra.Command{
		Use:   "trigger NAME",
		Short: "Run a schedule once, now, and print the id of the task",
		Long: `Run a schedule once, now and in any state, and print the id of the task. Its ticks stay as they are.
While a run executes, it is refused without --beside.`,
		Example: `  delaytask schedule trigger report.daily
  delaytask get $(delaytask schedule trigger report.daily) --wait 5m`,
	}, func(ctx context.Context, _ *scheduler.Scheduler, to *scheduleChanged) (string, error) {
		number, err := a.operator.TriggerSchedule(ctx, by(), to.Name, beside)
		to.TaskID = wire.ID(number)
		return id(number), err
	})
	cmd.Flags().BoolVar(&beside, "beside", false, "also beside a run that executes")
	return cmd
}

func (a *app) scheduleBackfillCommand() *cobra.Command {
	var from, to zoned
	var atOnce int
	cmd := a.onSchedule(&cobra.Command{
		Use:   "backfill NAME --from TIME --to TIME",
		Short: "Run the past ticks of a schedule",
		Long: `Run the past ticks of a schedule in a range, both ends included: each once, the oldest first, with the
lowest priority. A new schedule holds these runs; its name is printed. It can be paused, resumed and deleted.`,
		Example: "  delaytask schedule backfill report.daily --from 2027-01-01 --to '2027-01-31 23:59' --at-once 4",
	}, func(ctx context.Context, _ *scheduler.Scheduler, changed *scheduleChanged) (string, error) {
		zone, err := a.zoneOfSchedule(ctx, changed.Name)
		if err != nil {
			return "", err
		}
		changed.Backfill, err = a.operator.Backfill(ctx, by(), changed.Name, from.in(zone), to.in(zone), atOnce)
		return changed.Backfill, err
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if from == nil || to == nil {
			return misusedf("say which ticks, by --from and --to")
		}
		return run(cmd, args)
	}
	zonedVar(cmd, &from, "from", "the first tick, such as '2027-01-31 08:30' (of the schedule's zone)")
	zonedVar(cmd, &to, "to", "the last tick")
	cmd.Flags().IntVar(&atOnce, "at-once", 1, "how many runs may be open at once, up to 1000")
	return cmd
}

func (a *app) scheduleDeleteCommand() *cobra.Command {
	var yes bool
	cmd := a.onSchedule(&cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a schedule with its history",
		Long: `Delete a schedule, its history and its backfills. A run that executes goes on. It asks
first; where there is no terminal it wants --yes. A schedule that a program declares is refused:
change the program, or pause the schedule.`,
		Example: "  delaytask schedule delete report.daily --yes",
	}, func(ctx context.Context, s *scheduler.Scheduler, to *scheduleChanged) (string, error) {
		if !yes {
			if _, err := s.GetSchedule(ctx, to.Name); err != nil {
				return "", err
			}
			if err := a.confirm(ctx, fmt.Sprintf("Delete %s and its history?", to.Name)); err != nil {
				return "", err
			}
		}
		err := a.operator.DeleteSchedule(ctx, by(), to.Name)
		return fmt.Sprintf("Deleted %s.", to.Name), err
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !yes && !a.interactive {
			return misusedf("there is nobody to ask whether to delete %s: add --yes", oneLine(args[0]))
		}
		return run(cmd, args)
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask; needed where nobody can be asked, as in a script")
	return cmd
}

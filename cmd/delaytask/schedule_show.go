package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) scheduleListCommand() *cobra.Command {
	var f delaytask.ScheduleFilter
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List schedules",
		Long: `List schedules by name. NEXT is when the next tick is due, and LAST the tick of the last run that
completed, in the zone of the schedule.`,
		Example: `  delaytask schedule list --prefix report.
  delaytask schedule list --json | jq -r '.items[] | select(.state == "paused") | .name'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return misusedf("--limit %d: want 1 or more", limit)
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				page, err := a.schedulePages(ctx, s, f, limit)
				if err != nil {
					return err
				}
				return a.printSchedules(page, s.Now())
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Prefix, "prefix", "", "only schedules whose names begin so")
	flags.StringVar(&f.Owner, "owner", "", "only schedules that this set declares")
	flags.IntVar(&limit, "limit", 100, "at most this many; it says when there are more")
	flags.StringVar(&f.AfterName, "after", "", "only schedules with a later name: the next page")
	return a.withRaw(cmd)
}

// schedulePages reads up to limit schedules, in as many pages as that takes.
func (a *app) schedulePages(
	ctx context.Context, s *scheduler.Scheduler, f delaytask.ScheduleFilter, limit int,
) (all delaytask.SchedulePage, err error) {
	for {
		f.Limit = limit - len(all.Schedules)
		page, err := s.ListSchedules(ctx, f)
		if err != nil {
			return all, err
		}
		all.Schedules, all.Next = append(all.Schedules, page.Schedules...), page.Next
		if page.Next == "" || len(all.Schedules) >= limit {
			return all, nil
		}
		f.AfterName = page.Next
	}
}

func (a *app) printSchedules(page delaytask.SchedulePage, now time.Time) error {
	if a.json {
		views := viewsOf(page.Schedules, func(s *delaytask.Schedule) scheduleView {
			shown := a.view().SeenSchedule(s)
			return scheduleViewOf(&shown)
		})
		return a.printJSON(list[scheduleView]{Items: views, Next: page.Next})
	}
	if len(page.Schedules) == 0 {
		return a.printf("No schedule matches.\n")
	}
	t := a.newTable("NAME", "STATE", "TAG", "TICKS", "NEXT", "IN", "LAST").mayCut(0, 2, 3)
	for i := range page.Schedules {
		s := &page.Schedules[i]
		in := ""
		if !s.NextDue.IsZero() {
			in = away(s.NextDue.Sub(now))
		}
		ticks := strings.Join(s.Spec.Lines, " ; ") + " " + cmp.Or(s.Spec.Zone, "UTC")
		zone := zoneOf(s.Spec.Zone)
		t.row(s.Name, string(s.State), s.Tag, ticks, momentIn(s.NextDue, zone), in, momentIn(s.LastSuccess, zone))
		t.paint(1, styleOfSchedule(s.State))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if page.Next != "" {
		a.note("There are more; the next page: --after %s\n", page.Next)
	}
	return nil
}

func styleOfSchedule(state delaytask.ScheduleState) style {
	switch state {
	case delaytask.SchedulePaused:
		return yellow
	case delaytask.ScheduleActive:
		return plain
	default:
		return dim
	}
}

// shownRuns is how many ticks of the past a schedule shows.
const shownRuns = 10

func (a *app) scheduleShowCommand() *cobra.Command {
	return a.withRaw(&cobra.Command{
		Use:   "show NAME",
		Short: "Show everything about a schedule",
		Long: `Show a schedule: its definition and its state, how far away the next tick is, and its last ticks. Times
are in the zone of the schedule.`,
		Example: `  delaytask schedule show report.daily
  delaytask schedule show report.daily --json | jq -r .next_due`,
		Args: wanted(1, 1, "the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				shown, err := a.view().Schedule(ctx, args[0])
				if err != nil {
					return err
				}
				ticks, err := a.view().Ticks(ctx, args[0], time.Time{}, shownRuns)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(struct {
						scheduleView
						History []wire.ScheduleTick `json:"history"`
					}{scheduleViewOf(&shown), wire.FromScheduleTicks(ticks).Ticks})
				}
				defer a.noteRedacted(shown.Redacted)
				if err := a.printSchedule(&shown.Schedule, s.Now()); err != nil || len(ticks) == 0 {
					return err
				}
				if err := a.printf("\nlast ticks\n"); err != nil {
					return err
				}
				return a.printHistory(ticks, zoneOf(shown.Spec.Zone), "  ")
			})
		},
	})
}

// printSchedule leaves out fields that are not set.
func (a *app) printSchedule(s *delaytask.Schedule, now time.Time) error {
	fields, zone := a.newTable().mayCut(1), zoneOf(s.Spec.Zone)
	moment := func(t time.Time) string { return momentIn(t, zone) }
	field := func(name, value string) {
		if value != "" {
			fields.row(name, value)
		}
	}
	number := func(name string, n int) {
		if n != 0 {
			field(name, strconv.Itoa(n))
		}
	}
	long := func(name string, d time.Duration) {
		if d != 0 {
			field(name, span(d))
		}
	}
	field("name", s.Name)
	field("state", strings.TrimSuffix(fmt.Sprintf("%s: %s", s.State, s.Reason), ": "))
	fields.paint(1, styleOfSchedule(s.State))
	field("backfill of", s.Parent)
	if s.Owner != "" {
		field("declared by", fmt.Sprintf("%s, revision %s", s.Owner, moment(s.Revision)))
	}
	for _, line := range s.Spec.Lines {
		field("ticks", line)
	}
	field("zone", s.Spec.Zone)
	field("clock changes", string(s.Spec.DST))
	field("start", moment(s.Spec.Start))
	field("end", moment(s.Spec.End))
	field("tag", s.Tag)
	field("ttr", span(s.TTR))
	number("max attempts", s.MaxAttempts)
	number("priority", s.Priority)
	field("overlap", string(s.Overlap))
	number("max open", s.MaxOpen)
	field("missed", string(s.Missed))
	long("start within", s.StartWithin)
	long("jitter", s.Jitter)
	number("pause after", s.PauseAfter)
	number("max runs", s.MaxRuns)
	number("keep runs", s.KeepRuns)
	if s.RetryPastNext {
		field("retry past next", "yes")
	}
	if !s.NextDue.IsZero() {
		field("next", fmt.Sprintf("%s, in %s", moment(s.NextDue), away(s.NextDue.Sub(now))))
	}
	field("last tick", moment(s.LastTick))
	field("last success", moment(s.LastSuccess))
	if s.RunID != 0 {
		field("newest run", id(s.RunID))
	}
	number("runs", int(s.Runs))
	number("ticks not run", int(s.Skipped))
	number("failures", s.Failures)
	field("version", id(s.Version))
	field("created", moment(s.Created))
	field("updated", moment(s.Updated))
	for name, value := range sorted(s.Headers) {
		field("header "+name, value)
	}
	if err := fields.flush(); err != nil {
		return err
	}
	return a.section("body", string(s.Body))
}

func (a *app) printHistory(ticks []delaytask.ScheduleTick, zone *time.Location, indent string) error {
	t := a.newTable(indent+"TICK", "TICKS", "CAUSE", "OUTCOME", "TASK", "STARTED", "TOOK", "NOTE").mayCut(7)
	for _, tick := range ticks {
		task, took := "", ""
		if tick.TaskID != 0 {
			task = id(tick.TaskID)
		}
		if !tick.Start.IsZero() && !tick.Finish.IsZero() {
			took = span(tick.Finish.Sub(tick.Start))
		}
		t.row(indent+momentIn(tick.Tick, zone), strconv.Itoa(tick.Ticks), string(tick.Cause), string(tick.Outcome),
			task, momentIn(tick.Start, zone), took, tick.Note)
		t.paint(3, styleOf(delaytask.Status(tick.Outcome)))
	}
	return t.flush()
}

func (a *app) scheduleExplainCommand() *cobra.Command {
	var tick zoned
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a schedule, or one of its ticks, did not run",
		Long:  "Say in a sentence how a schedule stands, or what became of one of its ticks, and why.",
		Example: `  delaytask schedule explain report.daily
  delaytask schedule explain report.daily --tick '2027-01-01 02:30'`,
		Args: wanted(1, 1, "the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onTasks(cmd, reads, func(ctx context.Context, _ *scheduler.Scheduler) error {
				zone, err := a.zoneOfSchedule(ctx, args[0])
				if err != nil {
					return err
				}
				e, err := a.view().ExplainSchedule(ctx, args[0], tick.in(zone))
				if err != nil {
					return err
				}
				return a.say(wire.FromScheduleExplanation(&e.ScheduleExplanation), "%s\n", timesIn(e.Text, zone))
			})
		},
	}
	zonedVar(cmd, &tick, "tick", "the tick in question, such as '2027-01-31 08:30' (of the schedule's zone)")
	return a.withRaw(cmd)
}

func (a *app) scheduleTicksCommand() *cobra.Command {
	var before zoned
	var limit int
	cmd := &cobra.Command{
		Use:   "ticks NAME",
		Short: "List what became of the ticks of a schedule",
		Long:  "List what became of the ticks of a schedule, the newest first, also of those that did not run.",
		Example: `  delaytask schedule ticks report.daily
  delaytask schedule ticks report.daily --before 2027-01-01 --limit 1000 --json`,
		Args: wanted(1, 1, "the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return misusedf("--limit %d: want 1 to 1000", limit)
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, _ *scheduler.Scheduler) error {
				zone, err := a.zoneOfSchedule(ctx, args[0])
				if err != nil {
					return err
				}
				ticks, err := a.view().Ticks(ctx, args[0], before.in(zone), limit)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(list[wire.ScheduleTick]{Items: wire.FromScheduleTicks(ticks).Ticks})
				case len(ticks) == 0:
					return a.printf("No tick was decided.\n")
				default:
					return a.printHistory(ticks, zone, "")
				}
			})
		},
	}
	zonedVar(cmd, &before, "before", "only ticks before this time, such as 2027-01-31 (of the schedule's zone)")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many, up to 1000")
	return a.withRaw(cmd)
}

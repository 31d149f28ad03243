package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) scheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Work with schedules",
		Example: `  delaytask schedule preview '30 2 * * MON-FRI' --zone Europe/Berlin
  delaytask schedule create report.daily '30 2 * * MON-FRI' --zone Europe/Berlin --tag report.build
  delaytask schedule show report.daily`,
	}
	cmd.AddCommand(a.schedulePreviewCommand(), a.scheduleCreateCommand(), a.scheduleListCommand(),
		a.scheduleShowCommand(), a.scheduleUpdateCommand(), a.schedulePauseCommand(), a.scheduleResumeCommand(),
		a.scheduleTriggerCommand(), a.scheduleSkipCommand(), a.scheduleResetCommand(), a.scheduleBackfillCommand(),
		a.scheduleTicksCommand(), a.scheduleExplainCommand(), a.scheduleDeleteCommand())
	return cmd
}

// specFlags hold all of a spec but its lines.
type specFlags struct {
	zone, dst  string
	start, end zoned
	except     []string
}

func (f *specFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.zone, "zone", "", "time zone of the lines, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.dst, "dst", string(delaytask.DSTOnce), "what a clock change does: once, skip, both or literal")
	flags.StringArrayVar(&f.except, "except", nil,
		"leave out a date such as 2027-12-24, or what a cron line matches; may be repeated")
	zonedVar(cmd, &f.start, "start", "no tick before this time, such as 2027-01-31 (of --zone)")
	zonedVar(cmd, &f.end, "end", "no tick after this time")
	values(cmd, "dst", string(delaytask.DSTOnce), string(delaytask.DSTSkip), string(delaytask.DSTBoth),
		string(delaytask.DSTLiteral))
}

func (f *specFlags) spec(lines []string) delaytask.Spec {
	zone := zoneOf(f.zone)
	s := delaytask.Spec{
		Lines: lines, Zone: f.zone, DST: delaytask.DST(f.dst), Start: f.start.in(zone), End: f.end.in(zone),
	}
	return s.Except(f.except...)
}

// zoneOf returns the zone of a schedule, UTC for none. One that this machine does not know is refused elsewhere.
func zoneOf(name string) *time.Location {
	if zone, err := spec.LoadZone(name); err == nil {
		return zone
	}
	return time.UTC
}

const linesWanted = "one or more lines, each in quotes, as in '30 2 * * *'"

func (a *app) schedulePreviewCommand() *cobra.Command {
	var f specFlags
	var after zoned
	var count int
	cmd := &cobra.Command{
		Use:   "preview LINE...",
		Short: "Show when a schedule would run",
		Long: `Show when a schedule would run, and what clock changes do to it. No database is needed.

It runs when one of the lines says so. Each is an argument in quotes:
  '30 2 * * MON-FRI'         minute, hour, day of month, month, day of week
  '*/15 30 2 L * *'          six fields: the second comes first; L is the last day of the month
  '@daily'                   also @yearly, @monthly, @weekly, @hourly
  '@every 24h/2h'            an interval and its phase, counted from 1970 in UTC
  '@at 2027-01-01T09:00'     one local time; with Z or +02:00 at its end one instant
  '!2027-12-24'              left out, as by --except

When the clock is set forward, some local times do not exist; set back, some come twice. --dst says what runs:
  once     at the end of the gap; the first pass
  skip     not at all; the first pass
  both     at the end of the gap; both passes
  literal  not at all; both passes
Cron lines for all hours follow the hours that really pass.`,
		Example: `  delaytask schedule preview '30 2 * * MON-FRI' --zone Europe/Berlin --except 2027-12-24
  delaytask schedule preview '30 2 * * *' --zone Europe/Berlin --after 2027-03-27 --dst skip -n 3
  delaytask schedule preview '@every 90m' '@at 2027-01-01T09:00:00Z' --json | jq -r '.ticks[].time'`,
		Args: wanted(1, -1, linesWanted),
		RunE: func(cmd *cobra.Command, lines []string) error {
			s, now := f.spec(lines), time.Now()
			from := now
			if after != nil {
				from = after.in(zoneOf(f.zone))
			}
			ticks, warnings, err := scheduler.Preview(s, from, count)
			if err != nil {
				return pointed(err, s.Lines, lines)
			}
			if a.json {
				return a.printJSON(wire.FromTicks(ticks, warnings))
			}
			return a.printTicks(ticks, warnings, now, count)
		},
	}
	f.addFlags(cmd)
	zonedVar(cmd, &after, "after", "only later ticks than this time, such as 2027-01-31 (default now)")
	cmd.Flags().IntVarP(&count, "count", "n", 20, "how many ticks, at most 1000")
	return a.withJSON(cmd)
}

func (a *app) printTicks(ticks []delaytask.Tick, warnings []string, now time.Time, count int) error {
	layout := "2006-01-02 15:04"
	for _, tick := range ticks {
		if tick.Time.Second() != 0 {
			layout = time.DateTime
		}
	}
	t := a.newTable("LOCAL", "UTC", "IN", "NOTE").mayCut(3)
	for _, tick := range ticks {
		as, note := plain, tick.Note
		if tick.Dropped {
			as, note = dim, "does not run: "+note
		} else {
			count--
		}
		t.row(tick.Time.Format("Mon "+layout+zoneLayout(tick.Time)), tick.Time.UTC().Format(layout),
			away(tick.Time.Sub(now)), note)
		t.paint(0, as)
	}
	if len(ticks) > 0 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if count > 0 {
		if err := a.printf("There is no later tick.\n"); err != nil {
			return err
		}
	}
	for _, w := range warnings {
		if w == spec.UTCWarning {
			w += "; --zone sets one, such as --zone Europe/Berlin"
		}
		a.note("delaytask: warning: %s\n", w)
	}
	return nil
}

// zoneLayout shows the abbreviation of a zone, where it has one besides its offset.
func zoneLayout(t time.Time) string {
	if name, _ := t.Zone(); strings.ContainsAny(name, "+-") {
		return " -07:00"
	}
	return " MST -07:00"
}

// away formats how far a time is away. A duration ends at 292 years.
func away(d time.Duration) string {
	if d == math.MaxInt64 || d == math.MinInt64 {
		return "over 292 years"
	}
	return span(d)
}

// pointedError shows where a line is wrong, below its sentence.
type pointedError struct {
	error
	line   string
	column int
}

func (e *pointedError) Unwrap() error { return e.error }

// caret is the line, and a mark under the place.
func (e *pointedError) caret() string {
	before := oneLine(e.line[:min(e.column-1, len(e.line))])
	return fmt.Sprintf("  %s\n  %s^\n", oneLine(e.line), strings.Repeat(" ", runewidth.StringWidth(before)))
}

// pointed adds the place to an error about one of the lines. A shell that got no quotes makes a line of each field.
func pointed(err error, lines, args []string) error {
	wrong, ok := errors.AsType[*delaytask.SpecError](err)
	if !ok || wrong.Line == 0 {
		return err
	}
	if unquoted := len(args) >= 5 && !strings.ContainsAny(strings.Join(args, ""), " \t"); unquoted {
		return misusedf("want %s; got %s", linesWanted, counted(len(args), "line"))
	}
	if wrong.Column == 0 {
		return err
	}
	return &pointedError{err, lines[wrong.Line-1], wrong.Column}
}

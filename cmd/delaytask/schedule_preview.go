package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

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
	if count > 0 && !slices.Contains(warnings, spec.EarlyWarning) {
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

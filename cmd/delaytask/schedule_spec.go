package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

const linesWanted = "one or more lines, each in quotes, as in '30 2 * * *'"

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
	zonedVar(cmd, &f.start, "start", "no tick before this time, such as 2027-01-31 (of --zone); '' for none")
	zonedVar(cmd, &f.end, "end", "no tick after this time; '' for none")
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

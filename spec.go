package delaytask

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Spec says when a schedule runs. Its ticks are the instants that its lines name, each once, except for those that a
// line with "!" leaves out. There are 1 to 16 lines, of at most 256 bytes each:
//
//	30 2 * * MON-FRI            cron: minute, hour, day of month, month, day of week
//	*/15 30 2 * * *             cron with six fields: the second comes first
//	0 9 L * *                   L is the last day of the month
//	@daily                      0 0 * * *; also @yearly, @monthly, @weekly, @hourly
//	@every 90m                  an interval of whole seconds, counted from 1970 in UTC
//	@every 24h/2h               the same with a phase: each day at 02:00 in UTC
//	@at 2027-01-01T09:00        one local time
//	@at 2027-01-01T09:00:00Z    one instant
//	!2027-12-24                 leaves a day out
//	!* * 25 12 *                leaves out what a cron line matches
//
// A field is *, */n, n, a-b or a-b/n, or several of them with commas between. Months and days have their English names
// of three letters too; 0 and 7 are Sunday. A line with both day fields set runs on the days that match either.
type Spec struct {
	Lines []string
	Zone  string    // a name of the IANA database such as Europe/Berlin; "" is UTC, never the zone of the machine
	DST   DST       // "" is DSTOnce
	Start time.Time // no tick is before it; zero: no bound
	End   time.Time // no tick is after it; zero: no bound
}

// DST says what a clock change does to a local time that does not exist, and to one that comes twice. It is for cron
// lines with chosen hours and for single local times. A cron line for all hours follows the hours that really pass, as
// "@every" does. The service uses the same texts.
type DST string

// The rules for clock changes.
const (
	DSTOnce    DST = "once"    // at the end of the gap; the first pass. The default
	DSTSkip    DST = "skip"    // not at all; the first pass
	DSTBoth    DST = "both"    // at the end of the gap; both passes
	DSTLiteral DST = "literal" // not at all; both passes
)

// Except returns a copy that leaves out what the lines match: dates such as "2027-12-24", and cron lines. The "!"
// before them may be missing.
func (s Spec) Except(lines ...string) Spec {
	s.Lines = slices.Clone(s.Lines)
	for _, line := range lines {
		line = strings.TrimLeft(line, " \t")
		if !strings.HasPrefix(line, "!") {
			line = "!" + line
		}
		s.Lines = append(s.Lines, line)
	}
	return s
}

// Tick is an instant that a spec names.
type Tick struct {
	Time    time.Time // whole seconds, with the offset of the spec's zone
	Note    string    // what a clock change does to it, such as "moved: 02:30 does not exist"; "" for most
	Dropped bool      // it does not run: the DST rule drops it
}

// ErrInvalidSpec is returned for a [Spec] that cannot be read, or that never runs. [SpecError] says where it is wrong.
var ErrInvalidSpec = errors.New("delaytask: invalid schedule")

// SpecError says where a [Spec] is wrong, and why. It Is [ErrInvalidSpec].
type SpecError struct {
	Line   int // in Spec.Lines, from 1; 0 when it is about the spec as a whole
	Column int // of the line, in bytes from 1; 0 when it is about the line as a whole
	Reason string
}

func (e *SpecError) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%v: %s", ErrInvalidSpec, e.Reason)
	case e.Column == 0:
		return fmt.Sprintf("%v: line %d: %s", ErrInvalidSpec, e.Line, e.Reason)
	default:
		return fmt.Sprintf("%v: line %d, column %d: %s", ErrInvalidSpec, e.Line, e.Column, e.Reason)
	}
}

func (e *SpecError) Unwrap() error { return ErrInvalidSpec }

// Cron returns the spec of a cron line such as "30 2 * * MON-FRI" in a zone of the IANA database. "" is UTC.
func Cron(line, zone string) Spec { return Spec{Lines: []string{line}, Zone: zone} }

// Every returns the spec of an interval of whole seconds, counted from 1970 in UTC: a restart does not shift it.
func Every(d time.Duration) Spec { return Spec{Lines: []string{"@every " + d.String()}} }

// At returns the spec of one instant. A fraction of a second is rounded up, so that nothing runs early.
func At(t time.Time) Spec {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return Spec{Lines: []string{"@at " + whole.Format(time.RFC3339)}}
}

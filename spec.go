package delaytask

import (
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/spec"
	"github.com/delaytask/delaytask/processor"
)

// Spec says when a schedule runs, by cron lines, intervals and single times in a zone. [Cron], [Every] and [At] make
// the usual ones. [processor.Spec] has the grammar of the lines.
type Spec = processor.Spec

// DST says what a clock change does to a local time that does not exist, and to one that comes twice.
type DST = processor.DST

// The rules for clock changes, for a local time that does not exist and for one that comes twice.
const (
	DSTOnce    = processor.DSTOnce    // at the end of the gap; the first pass. The default
	DSTSkip    = processor.DSTSkip    // not at all; the first pass
	DSTBoth    = processor.DSTBoth    // at the end of the gap; both passes
	DSTLiteral = processor.DSTLiteral // not at all; both passes
)

// Tick is an instant that a spec names.
type Tick = processor.Tick

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

const maxPreview = 1000

// Preview returns the next n ticks after a moment. Between them are those that the DST rule drops, which are not
// counted. There are fewer than n when the spec ends. The warnings say what a line may mean unexpectedly. It needs no
// database and takes milliseconds.
//
// It returns [ErrInvalidSpec] with a [SpecError], and [ErrInvalidOption] when n is not in 1 to 1,000.
func Preview(s Spec, after time.Time, n int) (ticks []Tick, warnings []string, err error) {
	if n < 1 || n > maxPreview {
		return nil, nil, fmt.Errorf("%w: count: want 1 to %d, got %d", ErrInvalidOption, maxPreview, n)
	}
	read, err := readSpec(s)
	if err != nil {
		return nil, nil, err
	}
	warnings = read.Warnings()
	found, complete := read.Preview(after, n)
	for _, t := range found {
		ticks = append(ticks, Tick(t))
	}
	if !complete {
		warnings = append(warnings, "the search for ticks ended early: the excludes leave out too much")
	}
	return ticks, warnings, nil
}

// readSpec returns what a spec means, or a [SpecError].
func readSpec(s Spec) (*spec.Spec, error) {
	rule, err := spec.ParseRule(string(s.DST))
	if err != nil {
		return nil, &SpecError{Reason: err.Error()}
	}
	read, err := spec.Parse(spec.Definition{Lines: s.Lines, Zone: s.Zone, DST: rule, Start: s.Start, End: s.End})
	if wrong, ok := errors.AsType[*spec.Error](err); ok {
		return nil, &SpecError{Line: wrong.Line, Column: wrong.Column, Reason: wrong.Reason}
	}
	if err != nil {
		return nil, &SpecError{Reason: err.Error()}
	}
	return read, nil
}

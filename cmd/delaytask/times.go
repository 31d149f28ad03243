package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/wire"
)

// parseTime reads a time, of the zone of the machine where it has none.
func parseTime(s string) (time.Time, error) { return wire.ParseLocal(s, time.Local, time.Now()) }

func timeVar(cmd *cobra.Command, to *time.Time, name, usage string) {
	parsedVar(cmd, to, name, parseTime, usage)
}

// zoned is a time of a schedule, whose zone it is read in. It is nil without its flag, and where that is empty.
type zoned func(zone *time.Location) time.Time

func zonedVar(cmd *cobra.Command, to *zoned, name, usage string) {
	parsedVar(cmd, to, name, func(s string) (zoned, error) {
		if s == "" {
			return nil, nil
		}
		now := time.Now()
		_, err := wire.ParseLocal(s, time.UTC, now)
		return func(zone *time.Location) time.Time {
			t, _ := wire.ParseLocal(s, zone, now)
			return wire.Bound(t)
		}, err
	}, usage)
}

// in returns the time, zero for none.
func (z zoned) in(zone *time.Location) time.Time {
	if z == nil {
		return time.Time{}
	}
	return z(zone)
}

// relative is a time that may be given by how far it is from now, by the database's clock.
type relative struct {
	given bool
	after time.Duration // now, where at is zero
	at    time.Time
}

// from returns the time, zero without its flag.
func (r relative) from(now time.Time) time.Time {
	if r.given && r.at.IsZero() {
		return now.Add(r.after)
	}
	return r.at
}

// agoVar adds a flag for a time in the past: a duration is so long ago.
func agoVar(cmd *cobra.Command, to *relative, name, usage string) {
	parsedVar(cmd, to, name, func(s string) (relative, error) {
		r, err := parseRelative(s)
		r.after = -r.after
		return r, err
	}, usage)
}

// parseRelative reads a time. A duration is so far in the future.
func parseRelative(s string) (relative, error) {
	d, err := wire.ParseDuration(s)
	if err == nil || errors.Is(err, wire.ErrDurationTooLong) {
		return relative{given: true, after: d}, err
	}
	t, err := parseTime(s)
	if err != nil {
		err = fmt.Errorf("want a duration such as 30s, 1h30m or 7d, or a time such as %s; got %.40q",
			wire.LocalExamples, s)
	}
	return relative{given: true, at: wire.Bound(t)}, err
}

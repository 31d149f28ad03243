package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/durations"
)

// dueFlags say when: after a delay, or at a time.
type dueFlags struct{ delay, at string }

func (f *dueFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.delay, "delay", "", "due after this long, such as 500ms, 30m or 7d")
	cmd.Flags().StringVar(&f.at, "at", "", "due at this time, such as 2027-01-31T08:30:00Z or 1801384200000 (since 1970); a past one means now")
	noFiles(cmd, "delay", "at")
}

// parse returns the delay or the time; both are zero when neither flag was given.
func (f *dueFlags) parse(cmd *cobra.Command) (delay time.Duration, at time.Time, err error) {
	byDelay, byTime := cmd.Flags().Changed("delay"), cmd.Flags().Changed("at")
	switch {
	case byDelay && byTime:
		return 0, at, misusedf("--delay and --at contradict each other: give one of them")
	case byDelay:
		delay, err = parseDuration("delay", f.delay)
		if errors.Is(err, durations.ErrTooLong) { // a delay has a bound of its own
			err = misusedf("--delay %s: %w", f.delay, delaytask.ErrDelayTooLong)
		}
	case byTime:
		at, err = parseTime("at", f.at)
	}
	return delay, at, err
}

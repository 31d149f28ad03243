package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
)

// scheduleFlags hold the definition of a schedule, but for its lines.
type scheduleFlags struct {
	specFlags
	tag, body, app               string
	overlap, missed              string
	ttr, startWithin, jitter     time.Duration
	maxAttempts, priority        int
	maxOpen, pauseAfter, maxRuns int
	keepRuns                     int
	retryPastNext                bool
	headers                      []string
}

func (f *scheduleFlags) addFlags(cmd *cobra.Command) {
	f.specFlags.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.tag, "tag", "", "tag of the runs")
	flags.StringVar(&f.body, "body", "", "body of the runs; @FILE takes it from a file and - from standard input")
	flags.StringVar(&f.app, "app", "", "application that the runs belong to")
	durationVar(cmd, &f.ttr, "ttr",
		"how long after its process has died another takes a run (default: as configured)")
	flags.IntVar(&f.maxAttempts, "max-attempts", 0, "how often a run is tried (default: as configured)")
	flags.IntVar(&f.priority, "priority", 0, "-100 to 100, larger first among tasks that are due")
	flags.StringArrayVar(&f.headers, "header", nil, "name=value that travels with the body; may be repeated")
	flags.StringVar(&f.overlap, "overlap", string(delaytask.OverlapSkip),
		"what becomes of a tick while a run is open: skip, queue_one, replace or allow")
	flags.IntVar(&f.maxOpen, "max-open", delaytask.DefaultMaxOpen, "with --overlap allow: how many runs may be open")
	flags.StringVar(&f.missed, "missed", string(delaytask.MissedOnce),
		"what becomes of ticks that no process decided in time: once, skip or all")
	durationVar(cmd, &f.startWithin, "start-within",
		"a tick that is later than this does not run (default: no bound)")
	durationVar(cmd, &f.jitter, "jitter", "start up to this after the ticks, by the name (default: at the ticks)")
	flags.IntVar(&f.pauseAfter, "pause-after", 0, "pause when so many runs in a row have failed (default: never)")
	flags.IntVar(&f.maxRuns, "max-runs", 0, "end after so many runs (default: no bound)")
	flags.IntVar(&f.keepRuns, "keep-runs", delaytask.DefaultKeepRuns, "rows that the history keeps")
	flags.BoolVar(&f.retryPastNext, "retry-past-next", false, "attempts may begin after the next tick is due")
	values(cmd, "overlap", string(delaytask.OverlapSkip), string(delaytask.OverlapQueueOne),
		string(delaytask.OverlapReplace), string(delaytask.OverlapAllow))
	values(cmd, "missed", string(delaytask.MissedOnce), string(delaytask.MissedSkip), string(delaytask.MissedAll))
}

// definition is a schedule as the flags change it.
type definition struct {
	delaytask.Schedule
	given []delaytask.Option // of flags alone; they follow the schedule's
}

// apply changes what flags were given for.
func (f *scheduleFlags) apply(cmd *cobra.Command, a *app, d *definition, lines []string) (err error) {
	changed := cmd.Flags().Changed
	give := func(option delaytask.Option) func() { return func() { d.given = append(d.given, option) } }
	f.applySpec(cmd, &d.Spec, lines)
	for flag, to := range map[string]func(){
		"ttr": func() { d.TTR = f.ttr }, "jitter": func() { d.Jitter = f.jitter },
		"start-within": func() { d.StartWithin = f.startWithin },
		"tag":          func() { d.Tag = f.tag }, "priority": func() { d.Priority = f.priority },
		"max-attempts": func() { d.MaxAttempts = f.maxAttempts },
		"missed":       give(delaytask.WithMissed(delaytask.Missed(f.missed))),
		"max-open":     func() { d.MaxOpen = f.maxOpen }, "pause-after": func() { d.PauseAfter = f.pauseAfter },
		"max-runs": func() { d.MaxRuns = f.maxRuns }, "keep-runs": give(delaytask.WithKeepRuns(f.keepRuns)),
		"retry-past-next": func() { d.RetryPastNext = f.retryPastNext },
		"app":             give(delaytask.WithApp(f.app)),
		"overlap": func() {
			give(delaytask.WithOverlap(delaytask.Overlap(f.overlap)))()
			if f.overlap != string(delaytask.OverlapAllow) && !changed("max-open") {
				d.MaxOpen = 0
			}
		},
	} {
		if changed(flag) {
			to()
		}
	}
	if changed("body") {
		if d.Body, err = a.body([]string{f.body}); err != nil {
			return err
		}
	}
	headers, err := parseHeaders(f.headers)
	d.given = append(d.given, delaytask.WithHeaders(headers))
	return err
}

func (f *scheduleFlags) applySpec(cmd *cobra.Command, s *delaytask.Spec, lines []string) {
	given := f.spec(lines)
	if len(lines) > 0 {
		s.Lines = given.Lines
	} else {
		*s = s.Except(f.except...)
	}
	changed := cmd.Flags().Changed
	if changed("zone") {
		s.Zone = given.Zone
	}
	if changed("dst") {
		s.DST = given.DST
	}
	if changed("start") {
		s.Start = f.start.in(zoneOf(s.Zone))
	}
	if changed("end") {
		s.End = f.end.in(zoneOf(s.Zone))
	}
}

// options are those that make the definition.
func (d *definition) options() []delaytask.Option {
	return append(request.ScheduleOptions(&d.Schedule), d.given...)
}

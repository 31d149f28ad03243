package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/scheduler"
)

const decades = 290 * year

var scheduleSettings = []part[Schedule]{
	partOf("tag", text(1), func(s *Schedule) *string { return &s.Tag }),
	partOf("cron", lines, func(s *Schedule) *[]string { return &s.Cron }),
	partOf("every", text(1), func(s *Schedule) *string { return &s.Every }),
	partOf("at", lines, func(s *Schedule) *[]string { return &s.At }),
	partOf("except", lines, func(s *Schedule) *[]string { return &s.Except }),
	partOf("zone", text(0), func(s *Schedule) *string { return &s.Schedule.Spec.Zone }),
	partOf("dst", choice("once", "skip", "both", "literal"),
		func(s *Schedule) *string { return (*string)(&s.Schedule.Spec.DST) }),
	partOf("start", moment, func(s *Schedule) *time.Time { return &s.Schedule.Spec.Start }),
	partOf("end", moment, func(s *Schedule) *time.Time { return &s.Schedule.Spec.End }),
	partOf("body", text(0), func(s *Schedule) *string { return &s.Body }),
	partOf("app", text(0), func(s *Schedule) *string { return &s.App }),
	partOf("headers", lines, func(s *Schedule) *[]string { return &s.Headers }),
	partOf("ttr", duration(time.Second, day), func(s *Schedule) *time.Duration { return &s.TTR }),
	partOf("max_attempts", integer(1, 1_000_000), func(s *Schedule) *int { return &s.MaxAttempts }),
	partOf("priority", integer(-100, 100), func(s *Schedule) *int { return &s.Priority }),
	partOf("overlap", choice("skip", "queue_one", "replace", "allow"),
		func(s *Schedule) *string { return (*string)(&s.Overlap) }),
	partOf("max_open", integer(1, 10_000), func(s *Schedule) *int { return &s.MaxOpen }),
	partOf("missed", choice("once", "skip", "all"), func(s *Schedule) *string { return (*string)(&s.Missed) }),
	partOf("start_within", duration(time.Second, decades), func(s *Schedule) *time.Duration { return &s.StartWithin }),
	partOf("jitter", duration(0, day), func(s *Schedule) *time.Duration { return &s.Jitter }),
	partOf("pause_after", integer(0, math.MaxInt32), func(s *Schedule) *int { return &s.PauseAfter }),
	partOf("max_runs", integer(0, math.MaxInt32), func(s *Schedule) *int { return &s.MaxRuns }),
	partOf("keep_runs", integer(1, 100_000), func(s *Schedule) *int { return &s.KeepRuns }),
	partOf("retry_past_next", boolean, func(s *Schedule) *bool { return &s.RetryPastNext }),
}

// setSchedule takes the path below schedules: its name, and the name of its setting.
func (c *Config) setSchedule(path []string, value any) error {
	switch {
	case len(path) == 0 && isEmpty(value):
		return nil
	case len(path) == 0:
		return errors.New("want the names of schedules, and below each its settings")
	case !delaytask.ValidScheduleName(path[0]):
		return delaytask.ErrInvalidScheduleName
	case len(path) < 2:
		return errors.New("want the settings of a schedule below its name, such as tag and cron")
	}
	return setPart(&c.Schedules, scheduleSettings, path[0], path[1:], value, false)
}

// Spec returns when the schedule runs, and the key that each of its lines comes from.
func (s *Schedule) Spec() (spec delaytask.Spec, keys []string) {
	spec = s.Schedule.Spec
	add := func(key, prefix string, texts ...string) {
		for i, line := range texts {
			spec.Lines = append(spec.Lines, prefix+line)
			if len(texts) > 1 {
				keys = append(keys, fmt.Sprintf("%s[%d]", key, i))
			} else {
				keys = append(keys, key)
			}
		}
	}
	add("cron", "", s.Cron...)
	if s.Every != "" {
		add("every", "@every ", s.Every)
	}
	add("at", "@at ", s.At...)
	n := len(spec.Lines)
	spec = spec.Except(s.Except...)
	for i := range spec.Lines[n:] {
		keys = append(keys, fmt.Sprintf("except[%d]", i))
	}
	return spec, keys
}

// Options are the options of a declaration.
func (s *Schedule) Options() []delaytask.Option {
	options := append(request.ScheduleOptions(&s.Schedule), delaytask.WithApp(s.App))
	for _, header := range s.Headers {
		name, value, _ := strings.Cut(header, "=")
		options = append(options, delaytask.WithHeader(name, value))
	}
	return options
}

// checkSchedules names the key of each schedule that is wrong, and where in its text.
func (c *Config) checkSchedules() (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(c.Schedules)) {
		s := c.Schedules[name]
		if err := s.check(name); err != nil {
			errs = append(errs, fmt.Errorf("schedules.%s%w", name, err))
		}
	}
	return errs
}

func (s *Schedule) check(name string) error {
	spec, keys := s.Spec()
	switch {
	case s.Tag == "":
		return errors.New(".tag is missing")
	case len(s.Cron) == 0 && s.Every == "" && len(s.At) == 0:
		return errors.New(": want cron, every or at")
	}
	_, err := request.NewSchedule(name, spec, s.Tag, s.Body, request.Limits{Body: math.MaxInt}, s.Options()...)
	if err == nil {
		_, _, err = scheduler.Preview(spec, time.Now(), 1)
	}
	wrong, is := errors.AsType[*delaytask.SpecError](err)
	switch {
	case err == nil:
		return nil
	case !is || wrong.Line == 0:
		return fmt.Errorf(": %w", err)
	}
	place, column := "."+keys[wrong.Line-1], wrong.Column-prefixOf(spec.Lines[wrong.Line-1])
	if column > 0 {
		place += fmt.Sprintf(", column %d", column)
	}
	return fmt.Errorf("%s: %s", place, wrong.Reason)
}

// prefixOf is how many bytes of a line are not in the file.
func prefixOf(line string) int {
	for _, prefix := range []string{"@every ", "@at "} {
		if strings.HasPrefix(line, prefix) {
			return len(prefix)
		}
	}
	return 0
}

package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/durations"
	"github.com/delaytask/delaytask/internal/view"
	"github.com/delaytask/delaytask/internal/wire"
)

func parseID(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, misusedf("%q is not the id of a task: want a positive number, as delaytask list shows it", s)
	}
	return n, nil
}

func parseIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		n, err := parseID(arg)
		if err != nil {
			return nil, err
		}
		ids[i] = n
	}
	return ids, nil
}

// parseHeaders reads name=value; a value may hold further equals signs.
func parseHeaders(pairs []string) (map[string]string, error) {
	headers := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, misusedf("--header %q: want name=value", pair)
		}
		headers[name] = value
	}
	return headers, nil
}

// parseMaxLateness reads DURATION:POLICY, such as 10m:skip.
func parseMaxLateness(s string) (time.Duration, delaytask.LatePolicy, error) {
	text, name, _ := strings.Cut(s, ":")
	d, err := durations.Parse(text)
	policy, known := view.ParseLatePolicy(name)
	if err != nil || !known {
		return 0, 0, misusedf("--max-lateness %q: want a duration and run, skip or fail, as in 10m:skip", s)
	}
	return d, policy, nil
}

func parseTime(flag, s string) (time.Time, error) {
	if t, ok := wire.Epoch(s); ok {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, misusedf("--%s %q: want a time with its zone, as in 2027-01-31T08:30:00Z or "+
			"2027-01-31T08:30:00.250+02:00, or the seconds (10 digits), milliseconds (13) or microseconds (16) since 1970", flag, s)
	}
	return t, nil
}

// parseDuration reads a duration flag that was set.
func parseDuration(flag, s string) (time.Duration, error) {
	d, err := durations.Parse(s)
	if err != nil {
		return 0, misusedf("--%s: %w", flag, err)
	}
	return d, nil
}

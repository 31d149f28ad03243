package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
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
	return headers, operate.CheckHeaders(headers)
}

// parseMaxLateness reads DURATION:POLICY, such as 10m:skip.
func parseMaxLateness(s string) (time.Duration, delaytask.LatePolicy, error) {
	text, name, _ := strings.Cut(s, ":")
	d, err := wire.ParseDuration(text)
	policy, known := wire.ParseLatePolicy(name)
	if err != nil || !known {
		return 0, 0, misusedf("--max-lateness %q: want a duration and run, skip or fail, as in 10m:skip", s)
	}
	return d, policy, nil
}

var conflictModes = []string{"keep-existing", "replace-time", "replace-time-and-body", "only-earlier", "only-later"}

func parseConflictMode(s string) (delaytask.ConflictMode, error) {
	if !slices.Contains(conflictModes, s) {
		return "", misusedf("--on-conflict %q: want one of %s", s, strings.Join(conflictModes, ", "))
	}
	return delaytask.ConflictMode(strings.ReplaceAll(s, "-", "_")), nil
}

func parseTime(flag, s string) (time.Time, error) {
	if t, ok := wire.Epoch(s); ok {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, misusedf("--%s %q: want a time with its zone, as in 2027-01-31T08:30:00Z or "+
			"2027-01-31T08:30:00.250+02:00, or the seconds (10 digits), milliseconds (13) or microseconds (16) "+
			"since 1970", flag, s)
	}
	return t, nil
}

// parseDuration reads a duration flag that was set.
func parseDuration(flag, s string) (time.Duration, error) {
	d, err := wire.ParseDuration(s)
	if err != nil {
		return 0, misusedf("--%s: %w", flag, err)
	}
	return d, nil
}

// taskName names one task on a command line: by its id, or by its tag and key while it is unfinished.
type taskName struct{ tag, key, app string }

const taskNameWanted = "the id of one task, or --tag and --key of an unfinished one"

func (n *taskName) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.tag, "tag", "", "with --key: the tag of an unfinished task")
	cmd.Flags().StringVar(&n.key, "key", "", "with --tag: the key of an unfinished task")
	cmd.Flags().StringVar(&n.app, "app", "", "with --key: the application that the key belongs to (default: none)")
}

func (n *taskName) byKey() bool { return n.tag != "" || n.key != "" || n.app != "" }

func (n *taskName) ref(args []string) (delaytask.Ref, error) {
	byKey := n.byKey()
	switch {
	case byKey && (n.tag == "" || n.key == "" || len(args) > 0), !byKey && len(args) != 1:
		return delaytask.Ref{}, misusedf("want %s", taskNameWanted)
	case byKey:
		return delaytask.Key(n.tag, n.key).InApp(n.app), nil
	}
	number, err := parseID(args[0])
	return delaytask.ID(number), err
}

// dueFlags hold a due time: after a delay, or at a time.
type dueFlags struct{ delay, at string }

func (f *dueFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.delay, "delay", "", "due after this long, such as 500ms, 30m or 7d")
	cmd.Flags().StringVar(&f.at, "at", "",
		"due at this time, such as 2027-01-31T08:30:00Z or 1801384200000 (since 1970); a past one means now")
}

// parse returns the delay or the time; both are zero when neither flag was given.
func (f *dueFlags) parse(cmd *cobra.Command) (delay time.Duration, at time.Time, err error) {
	byDelay, byTime := cmd.Flags().Changed("delay"), cmd.Flags().Changed("at")
	switch {
	case byDelay && byTime:
		return 0, at, misusedf("--delay and --at contradict each other: give one of them")
	case byDelay:
		delay, err = parseDuration("delay", f.delay)
		if errors.Is(err, wire.ErrDurationTooLong) { // a delay has a bound of its own
			err = misusedf("--delay %s: %w", f.delay, delaytask.ErrDelayTooLong)
		}
	case byTime:
		at, err = parseTime("at", f.at)
	}
	return delay, at, err
}

var statuses = []string{
	string(delaytask.Pending), string(delaytask.Executing), string(delaytask.Completed), string(delaytask.Failed),
	string(delaytask.Cancelled),
}

// values lets the shell complete a flag from a list.
func values(cmd *cobra.Command, flag string, list ...string) {
	complete(cmd, flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // the flag does not exist, or has a completion already
	}
}

func parseStatus(s string) (delaytask.Status, error) {
	if s != "" && !slices.Contains(statuses, s) {
		return "", misusedf("--status %q: want pending, executing, completed, failed or cancelled", s)
	}
	return delaytask.Status(s), nil
}

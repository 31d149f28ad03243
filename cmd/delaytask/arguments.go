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

// wanted checks the number of arguments; its error names what is missing.
func wanted(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least {
			return misusedf("want %s", what)
		}
		if most >= 0 && len(args) > most {
			return misusedf("want %s, got %s", what, counted(len(args), "argument"))
		}
		return nil
	}
}

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

// lateLimit is what --max-lateness says.
type lateLimit struct {
	after  time.Duration
	policy delaytask.LatePolicy
}

// parseMaxLateness reads DURATION:POLICY, such as 10m:skip.
func parseMaxLateness(s string) (lateLimit, error) {
	text, name, _ := strings.Cut(s, ":")
	d, err := wire.ParseDuration(text)
	policy, known := wire.ParseLatePolicy(name)
	if err != nil || !known {
		return lateLimit{}, fmt.Errorf("want a duration and run, skip or fail, as in 10m:skip; got %q", s)
	}
	return lateLimit{d, policy}, nil
}

var conflictModes = []string{"keep-existing", "replace-time", "replace-time-and-body", "only-earlier", "only-later"}

func parseConflictMode(s string) (delaytask.ConflictMode, error) {
	if !slices.Contains(conflictModes, s) {
		return "", fmt.Errorf("want one of %s; got %q", strings.Join(conflictModes, ", "), s)
	}
	return delaytask.ConflictMode(strings.ReplaceAll(s, "-", "_")), nil
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
type dueFlags struct {
	delay time.Duration
	at    time.Time
}

func (f *dueFlags) addFlags(cmd *cobra.Command) {
	parsedVar(cmd, &f.delay, "delay", func(s string) (time.Duration, error) {
		d, err := wire.ParseDuration(s)
		if errors.Is(err, wire.ErrDurationTooLong) { // a delay has a bound of its own
			err = delaytask.ErrDelayTooLong
		}
		return d, err
	}, "due after this long, such as 500ms, 30m or 7d")
	timeVar(cmd, &f.at, "at",
		"due at this time, such as '2027-01-31 08:30' or 1801384200000 (since 1970); a past one means now")
}

func (f *dueFlags) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("delay") && cmd.Flags().Changed("at") {
		return misusedf("--delay and --at contradict each other: give one of them")
	}
	return nil
}

var statuses = []string{
	string(delaytask.Pending), string(delaytask.Executing), string(delaytask.Completed), string(delaytask.Failed),
	string(delaytask.Cancelled),
}

func parseStatus(s string) (delaytask.Status, error) {
	if s != "" && !slices.Contains(statuses, s) {
		return "", misusedf("--status %q: want pending, executing, completed, failed or cancelled", s)
	}
	return delaytask.Status(s), nil
}

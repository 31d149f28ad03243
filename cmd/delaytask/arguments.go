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

// parsed is a flag whose text is parsed as it is read. Its errors name the flag.
type parsed[T any] struct {
	name, text string
	to         *T
	parse      func(text string) (T, error)
}

func (f *parsed[T]) String() string { return f.text }
func (f *parsed[T]) Type() string   { return "string" } // what the help calls it

func (f *parsed[T]) Set(text string) (err error) {
	if *f.to, err = f.parse(text); err != nil {
		return misusedf("--%s: %w", f.name, err)
	}
	f.text = text
	return nil
}

// parsedVar adds a flag of any type.
func parsedVar[T any](cmd *cobra.Command, to *T, name string, parse func(string) (T, error), usage string) {
	cmd.Flags().Var(&parsed[T]{name: name, to: to, parse: parse}, name, usage)
}

// durationVar adds a flag whose default is what it points to.
func durationVar(cmd *cobra.Command, to *time.Duration, name, usage string) {
	parsedVar(cmd, to, name, wire.ParseDuration, usage)
	if *to != 0 {
		cmd.Flags().Lookup(name).DefValue = wire.FormatDuration(*to)
	}
}

// parseTime reads a time, of the zone of the machine where it has none.
func parseTime(s string) (time.Time, error) { return wire.ParseLocal(s, time.Local, time.Now()) }

func timeVar(cmd *cobra.Command, to *time.Time, name, usage string) {
	parsedVar(cmd, to, name, parseTime, usage)
}

// zoned is a time of a schedule, whose zone it is read in. It is nil without its flag.
type zoned func(zone *time.Location) time.Time

func zonedVar(cmd *cobra.Command, to *zoned, name, usage string) {
	parsedVar(cmd, to, name, func(s string) (zoned, error) {
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

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/scheduler"
)

// saveFlags are the flags of save.
type saveFlags struct {
	due         dueFlags
	key         string
	app         string
	id          string
	ttr         time.Duration
	maxAttempts int
	priority    int
	headers     []string
	maxLateness lateLimit
	onConflict  delaytask.ConflictMode
	maxWait     time.Duration
}

func (a *app) saveCommand() *cobra.Command {
	var f saveFlags
	cmd := &cobra.Command{
		Use:   "save TAG [BODY]",
		Short: "Save a task and print its id",
		Long: `Save a task and print its id. When the id is printed, the task is committed.

BODY is stored as it is; @FILE takes it from a file and - from standard input. Without --delay or --at the
task is due now. With --key the task is refused, with exit code 1, while an unfinished task of the tag carries
that key; --json prints the id of that task, with "duplicate": true. With --app the key is unique within that
application, and only its receivers are called.

With --on-conflict the save reschedules the pending task that carries the key, prints its id, and with
--json "rescheduled": true. It fails with exit code 1 while that task is executing. MODE is
replace-time, replace-time-and-body, only-earlier, only-later or keep-existing, the default. --max-wait
bounds how long such saves put a task off.`,
		Example: `  delaytask save order.close '{"order":42}' --delay 30m
  delaytask save report.build @report.json --at 2027-01-31T08:30:00Z --max-attempts 3
  delaytask save coupon.expire '{"coupon":7}' --delay 7d --key coupon-7 --max-lateness 1h:skip
  delaytask save index.build '{"page":7}' --delay 10s --key page-7 --on-conflict replace-time --max-wait 5m
  echo '{"user":1}' | delaytask save mail.send - --header trace=abc --json`,
		Args: wanted(1, 2, "a tag and a body"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.save(cmd, args, &f) },
	}
	f.due.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "name of the task, unique among the unfinished tasks of the tag")
	flags.StringVar(&f.app, "app", "", "application that the task belongs to, and that its key is unique within")
	flags.StringVar(&f.id, "id", "",
		"save under this id, from a save whose outcome was unknown: it is not stored twice")
	durationVar(cmd, &f.ttr, "ttr",
		"how long after its process has died another takes the task (default: as configured)")
	flags.IntVar(&f.maxAttempts, "max-attempts", 0, "how often the task is tried (default: as configured)")
	flags.IntVar(&f.priority, "priority", 0, "-100 to 100, larger first among tasks that are due")
	flags.StringArrayVar(&f.headers, "header", nil, "name=value that travels with the body; may be repeated")
	parsedVar(cmd, &f.maxLateness, "max-lateness", parseMaxLateness,
		"what happens when the task would start later: DURATION:run, :skip or :fail")
	parsedVar(cmd, &f.onConflict, "on-conflict", parseConflictMode,
		"what to do to the pending task that carries the key: a MODE")
	durationVar(cmd, &f.maxWait, "max-wait",
		"with --on-conflict, no save moves the task to a later time than this after it was first saved")
	values(cmd, "on-conflict", conflictModes...)
	return a.withJSON(cmd)
}

func (a *app) save(cmd *cobra.Command, args []string, f *saveFlags) error {
	c, err := a.settings(cmd)
	if err != nil {
		return err
	}
	options, err := f.options(cmd, c.Tags[args[0]])
	if err != nil {
		return err
	}
	body, err := a.body(args[1:])
	if err != nil {
		return err
	}
	_, err = request.NewSave(args[0], body, f.due.delay, request.Limits{Body: math.MaxInt}, options...)
	if err != nil {
		return err // before a database is created or read
	}
	item := delaytask.Item{Tag: args[0], Body: body, Delay: f.due.delay, Options: options}
	return a.onScheduler(cmd.Context(), c, creates, func(ctx context.Context, _ *scheduler.Scheduler) error {
		saved, err := a.operator.Save(ctx, by(), item)
		if duplicate, ok := errors.AsType[*delaytask.DuplicateError](err); ok && a.json {
			return errors.Join(err, a.printJSON(savedView{duplicate.ID, args[0], f.key, f.app, true, false}))
		}
		if err != nil {
			return err
		}
		return a.say(savedView{saved.ID, args[0], f.key, f.app, false, saved.Rescheduled}, "%d\n", saved.ID)
	})
}

// savedView is the saved task, or the one that has its key.
type savedView struct {
	ID          int64  `json:"id,string"`
	Tag         string `json:"tag"`
	Key         string `json:"key,omitempty"`
	App         string `json:"app,omitempty"`
	Duplicate   bool   `json:"duplicate,omitempty"`
	Rescheduled bool   `json:"rescheduled,omitempty"`
}

// options translates the settings of the tag and the flags, which win. The id is drawn outside of any node's numbers,
// because this process will have ended when the task is due.
func (f *saveFlags) options(cmd *cobra.Command, tag config.Tag) (options []delaytask.Option, err error) {
	if err := f.due.check(cmd); err != nil {
		return nil, err
	}
	number := delaytask.NewID()
	if f.id != "" {
		if number, err = parseID(f.id); err != nil {
			return nil, err
		}
	}
	headers, err := parseHeaders(f.headers)
	if err != nil {
		return nil, err
	}
	options = append(options, delaytask.WithID(number), delaytask.WithKey(f.key), delaytask.WithPriority(f.priority),
		delaytask.WithTTR(tag.TTR), delaytask.WithMaxAttempts(cmp.Or(f.maxAttempts, tag.MaxAttempts)),
		delaytask.WithHeaders(headers))
	if !f.due.at.IsZero() {
		options = append(options, delaytask.WithTime(f.due.at))
	}
	if f.app != "" {
		options = append(options, delaytask.WithApp(f.app))
	}
	changed := cmd.Flags().Changed
	if changed("ttr") {
		options = append(options, delaytask.WithTTR(f.ttr))
	}
	if changed("max-lateness") {
		options = append(options, delaytask.WithMaxLateness(f.maxLateness.after, f.maxLateness.policy))
	}
	if changed("on-conflict") {
		options = append(options, delaytask.WithOnConflict(f.onConflict))
	}
	if changed("max-wait") {
		options = append(options, delaytask.WithMaxWait(f.maxWait))
	}
	return options, nil
}

// body reads a body. It refuses one that was made from a body with masks: they would replace the secrets.
func (a *app) body(args []string) ([]byte, error) {
	body, err := a.bodyOf(args)
	if err == nil && redact.Holds(body) {
		return nil, delaytask.ErrRedacted
	}
	return body, err
}

func (a *app) bodyOf(args []string) ([]byte, error) {
	if len(args) == 0 {
		return nil, nil
	}
	file, isFile := strings.CutPrefix(args[0], "@")
	switch {
	case args[0] == "-":
		body, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, fmt.Errorf("read the body from standard input: %w", err)
		}
		return body, nil
	case isFile:
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the body: %w", err)
		}
		return body, nil
	default:
		return []byte(args[0]), nil
	}
}

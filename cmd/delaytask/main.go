// Command delaytask manages delayed tasks from a shell: it creates the tables, saves tasks, shows, cancels, moves and
// retries them, pauses tags, and explains why a task has not run.
//
// It runs no tasks: that is the work of the services which import package delaytask. `delaytask demo` shows all of it
// in a few seconds, on an embedded database.
//
// The exit code is 0 when the job is done, 1 when it failed, and 2 when the command was used wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // the image has no zones, nor has Windows

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after the first signal the next one kills
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: tests call it as main does. It returns the exit code.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr, environ: environ,
		watched: isTerminal(stderr), shown: isTerminal(stdout), interactive: isTerminal(stdin) && isTerminal(stderr),
	}
	a.screen, a.columns = a.screenOf(stdout), a.screenOf(stderr).width
	return a.run(ctx, args)
}

// app is what all commands share.
type app struct {
	stdin       io.Reader
	stdout      io.Writer
	stderr      io.Writer
	environ     []string
	watched     bool // stderr is a terminal
	shown       bool // stdout is a terminal
	interactive bool // stdin is too: questions can be asked
	screen      screen
	columns     int // of the terminal of stderr, 0 where stderr is not a terminal
	busy        busy
	operator    *operate.Operator // on the database of the command

	configPath string // --config
	json       bool   // --json
	raw        bool   // --raw

	redactor *redact.Redactor // of the settings
}

func (a *app) run(ctx context.Context, args []string) int {
	a.stdout, a.stderr = visible{clearing{a.stdout, &a.busy}}, visible{clearing{a.stderr, &a.busy}}
	root := a.rootCommand()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	a.json = a.json || asksForJSON(args)
	a.printError(command, err)
	return exitCode(err)
}

// settings reads the file, the environment and the flags of the command.
func (a *app) settings(cmd *cobra.Command) (config.Config, error) {
	path := a.configPath
	if path == "" {
		path = a.getenv("DELAYTASK_CONFIG")
	}
	c, err := config.Load(config.Source{Path: path, Environ: a.environ, Flags: cmd.Flags()})
	if err == nil {
		a.redactor, err = redact.New(c.Server.RedactNames...)
	}
	if err != nil {
		return c, misused(err)
	}
	return c, nil
}

// noteRedacted says what to do about masks, where people read.
func (a *app) noteRedacted(redacted bool) {
	if redacted && !a.json {
		a.note("Secrets are hidden; --raw shows what is stored.\n")
	}
}

// getenv returns the last value, as the operating system does.
func (a *app) getenv(name string) (value string) {
	for _, variable := range a.environ {
		if n, v, _ := strings.Cut(variable, "="); n == name {
			value = v
		}
	}
	return value
}

// commandNode is the name of this command's process among the nodes.
const commandNode = "delaytask command"

// schedulerConfig returns the settings of a scheduler that saves, changes and explains tasks.
func (a *app) schedulerConfig(c config.Config) scheduler.Config {
	return scheduler.Config{
		Logger:      a.maskedLogger(c.Log),
		TTR:         c.TTR,
		MaxAttempts: c.MaxAttempts,
		BodyLimit:   c.BodyLimit,
		LookAhead:   c.Lookahead.Every,
		Quarantine:  c.Quarantine,
		NodeName:    commandNode,
		Migrate:     c.Migrate,
		Retention: scheduler.Retention{
			Completed: orForEver(c.Retention.Completed),
			Cancelled: orForEver(c.Retention.Cancelled),
			Failed:    orForEver(c.Retention.Failed),
		},
	}
}

// orForEver translates a retention: 0 in a file means no bound, as a negative one in a Config does.
func orForEver(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug,
	"info":  slog.LevelInfo,
	"warn":  slog.LevelWarn,
	"error": slog.LevelError,
}

// logger writes to stderr. With --json it writes JSON, so that a program can read all output. JSON has UTC, people read
// local times.
func (a *app) logger(c config.Log) *slog.Logger {
	inZone := func(zone func(time.Time) time.Time) *slog.HandlerOptions {
		return &slog.HandlerOptions{Level: levels[c.Level], ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if attr.Value.Kind() == slog.KindTime {
				attr.Value = slog.TimeValue(zone(attr.Value.Time()))
			}
			return attr
		}}
	}
	if a.json || c.Format == "json" {
		return slog.New(slog.NewJSONHandler(a.stderr, inZone(time.Time.UTC)))
	}
	return slog.New(slog.NewTextHandler(a.stderr, inZone(time.Time.Local)))
}

// maskedLogger keeps secrets out of the log, unless they are asked for. A service does so by itself.
func (a *app) maskedLogger(c config.Log) *slog.Logger {
	if a.raw {
		return a.logger(c)
	}
	return slog.New(a.redactor.Handler(a.logger(c).Handler()))
}

func (a *app) versionCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  delaytask version --json",
		RunE: func(*cobra.Command, []string) error {
			return a.say(struct {
				Version string `json:"version"`
				Commit  string `json:"commit,omitempty"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{scheduler.Version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH}, "%s\n", versionLine())
		},
	})
}

func versionLine() string {
	return fmt.Sprintf("delaytask %s (%s, %s/%s)", scheduler.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit is the revision of the build, "" where it is unknown.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}

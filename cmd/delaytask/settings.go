package main

import (
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/scheduler"
)

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
		OnReplica:   c.OnReplica,
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

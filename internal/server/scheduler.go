package server

import (
	"log/slog"
	"time"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// schedulerConfig translates every setting: what is 0 in a file, to say "none", is negative in a Config, where 0 means
// the default.
func schedulerConfig(c config.Config, log *slog.Logger, metrics scheduler.Metrics, address string) scheduler.Config {
	return scheduler.Config{
		Logger:      log,
		Metrics:     metrics,
		Concurrency: c.Concurrency,
		TTR:         c.TTR,
		Timeout:     orNone(c.Timeout),
		MaxAttempts: c.MaxAttempts,
		Backoff:     processor.Exponential(c.Backoff.Base, c.Backoff.Cap, c.Backoff.Jitter),
		LookAhead:   c.Lookahead.Every,
		BodyLimit:   c.BodyLimit,
		ErrorLimit:  c.ErrorLimit,
		StopGrace:   orNone(c.StopGrace),
		NodeName:    c.Node.Name,
		Address:     address,
		Wake:        c.Wake.Listen,
		Quarantine:  c.Quarantine,
		Retention: scheduler.Retention{
			Completed: orNone(c.Retention.Completed),
			Cancelled: orNone(c.Retention.Cancelled),
			Failed:    orNone(c.Retention.Failed),
			Audit:     orNone(c.Retention.Audit),
		},
		Migrate:       c.Migrate,
		OnReplica:     c.OnReplica,
		StartPaused:   c.StartPaused,
		ScheduleOwner: c.SchedulesOwner,
		Revision:      c.SchedulesRevision,
	}
}

func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// tagOptions are the settings of one tag.
func tagOptions(t config.Tag) (options []processor.RegisterOption) {
	if t.Concurrency > 0 {
		options = append(options, processor.Concurrency(t.Concurrency))
	}
	if t.Timeout > 0 || t.NoTimeout {
		options = append(options, processor.Timeout(orNone(t.Timeout)))
	}
	if t.TTR > 0 {
		options = append(options, processor.TTR(t.TTR))
	}
	if t.MaxAttempts > 0 {
		options = append(options, processor.MaxAttempts(t.MaxAttempts))
	}
	return options
}

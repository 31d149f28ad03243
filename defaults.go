package delaytask

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/processor"
)

const day = 24 * time.Hour

// callTimeout is how long the scheduler waits for one answer of the database.
const callTimeout = 10 * time.Second

// withDefaults fills in what the user left out.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Backoff == nil {
		c.Backoff = processor.DefaultBackoff
	}
	if c.Propagator == nil {
		c.Propagator = propagation.TraceContext{}
	}
	c.Workers = cmp.Or(c.Workers, 64)
	c.TTR = cmp.Or(c.TTR, 15*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 20)
	c.LookAhead = cmp.Or(c.LookAhead, time.Second)
	c.LookAheadWindow = cmp.Or(c.LookAheadWindow, 2*c.LookAhead)
	c.ScanEvery = cmp.Or(c.ScanEvery, 5*time.Second)
	c.Horizon = cmp.Or(c.Horizon, max(time.Hour, c.LookAheadWindow))
	c.HeapCap = cmp.Or(c.HeapCap, 250_000)
	c.BodyLimit = cmp.Or(c.BodyLimit, processor.DefaultBodyLimit)
	c.ErrorLimit = cmp.Or(c.ErrorLimit, 8<<10)
	c.StopGrace = cmp.Or(c.StopGrace, 30*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, time.Second)
	c.Quarantine = cmp.Or(c.Quarantine, 5)
	c.Retention.Completed = cmp.Or(c.Retention.Completed, 7*day)
	c.Retention.Cancelled = cmp.Or(c.Retention.Cancelled, 7*day)
	c.Retention.Failed = cmp.Or(c.Retention.Failed, 30*day)
	return c
}

// check names the first field that is out of range. It expects the defaults in place.
func (c *Config) check() error {
	return cmp.Or(
		between("Workers", c.Workers, 1, 100_000),
		between("TTR", c.TTR, time.Second, day),
		between("MaxAttempts", c.MaxAttempts, 1, 1_000_000),
		between("LookAhead", c.LookAhead, 100*time.Millisecond, time.Minute),
		between("LookAheadWindow", c.LookAheadWindow, 2*c.LookAhead, time.Hour),
		between("ScanEvery", c.ScanEvery, time.Second, time.Minute),
		between("Horizon", c.Horizon, c.LookAheadWindow, 100*365*day),
		between("HeapCap", c.HeapCap, 1000, 100_000_000),
		between("BodyLimit", c.BodyLimit, 1, 1<<30),
		between("ErrorLimit", c.ErrorLimit, 256, 16<<20),
		between("Heartbeat", c.Heartbeat, 100*time.Millisecond, 1500*time.Millisecond),
		between("Quarantine", c.Quarantine, 3, 1_000_000),
	)
}

func between[T cmp.Ordered](field string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%w: %s is %v, want %v to %v", ErrInvalidConfig, field, value, least, most)
	}
	return nil
}

// engineConfig translates: what is negative here, to tell it from what was left out, is 0 there.
func (c *Config) engineConfig(store engine.Store) engine.Config {
	cfg := engine.Config{
		Store: store, Registry: new(processor.Registry), Logger: c.Logger, CallTimeout: callTimeout, Nap: clock.Nap,
		Workers: c.Workers, TTR: c.TTR, Timeout: max(c.Timeout, 0), MaxAttempts: c.MaxAttempts, Backoff: c.Backoff,
		ErrorLimit: c.ErrorLimit, Quarantine: c.Quarantine,
		LookAhead: c.LookAhead, Window: c.LookAheadWindow, ScanEvery: c.ScanEvery, Horizon: c.Horizon, HeapCap: c.HeapCap,
		NodeName: c.NodeName, Address: c.Address, Heartbeat: c.Heartbeat, StopGrace: max(c.StopGrace, 0),
		Retention: engine.Retention{
			Completed: max(c.Retention.Completed, 0),
			Cancelled: max(c.Retention.Cancelled, 0),
			Failed:    max(c.Retention.Failed, 0),
		},
		OnFailed: c.OnFailed, OnRescued: c.OnRescued,
	}
	if c.Metrics != nil {
		cfg.Metrics = c.Metrics.collector
	}
	return cfg
}

package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/engine/find"
	"github.com/delaytask/delaytask/internal/lifecycle/clock"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// Metrics counts and measures what a scheduler does. Package metrics has the one for Prometheus. It is a package of its
// own, so that a program that does not import it links no Prometheus.
type Metrics interface {
	Recorder() metrics.Recorder
}

// Config configures a [Scheduler]. Fields that are left out take their defaults. Open and New return [ErrInvalidConfig]
// for values that are out of range or contradict each other.
type Config struct {
	// Logger gets what operators should know, with the attributes task, tag, version, attempt, node and err. Bodies,
	// headers and passwords are never logged. Default: slog.Default().
	Logger *slog.Logger

	// Metrics counts and measures what the scheduler does: what New of package metrics returns. Default: nothing is
	// measured.
	Metrics Metrics

	// TracerProvider makes a span of OpenTelemetry for each save and for each attempt of a processor. Default: none are
	// made.
	TracerProvider trace.TracerProvider

	// Propagator writes the trace context of a save into the task's headers, where the save's context carries a span,
	// and reads it there for the attempts; saves do so without a TracerProvider as well. Nothing is written if the
	// caller sets one of the propagator's headers, or if the headers would become longer than 16 KiB. Default: W3C
	// trace context (traceparent and tracestate).
	Propagator propagation.TextMapPropagator

	// ContinueTraces makes the span of an attempt a child of the save's span. Otherwise it begins a trace of its own
	// that links to the save's: a trace should not stay open for as long as the delay and the retries last. Default:
	// false.
	ContinueTraces bool

	// Concurrency is how many tasks run at once in this process, 1 to 100,000. If several tags are served, none takes
	// all slots: the more a tag has, the more have to be free for it to get another. Alone it takes about eight ninths.
	// Default: 64.
	Concurrency int

	// TTR is how long a lease lasts: how long after the death of a process others take over its tasks. A lease is
	// renewed while its task runs, so a TTR need not cover the longest task. 1 s to 24 h. Default: 15 s.
	TTR time.Duration

	// Timeout is how long one attempt may take before its context ends. Negative: no bound. Default: 5 min.
	Timeout time.Duration

	// MaxAttempts is how often a task is tried before it stays failed, 1 to 1,000,000. Default: 20.
	MaxAttempts int

	// Backoff is the wait between two attempts. Default: [processor.DefaultBackoff].
	Backoff processor.Backoff

	// LookAhead is how often the tasks of the near future are read from the table. A task that another process saved
	// starts on time when it is due two such periods or more after its save. It must be the same in all processes. 100
	// ms to 1 min. Default: 1 s.
	LookAhead time.Duration

	// BodyLimit is the longest body in bytes, up to 1 GiB. Open and New refuse one that is not 64 KiB below the
	// max_allowed_packet of a MySQL server. Default: 1 MiB.
	BodyLimit int

	// ErrorLimit is how much of an attempt's error is kept, in bytes, 256 to 16 MiB. Default: 8 KiB.
	ErrorLimit int

	// StopGrace is how long Stop waits for running tasks before it interrupts and releases them, which spends no
	// attempt. Negative: none. Default: 30 s.
	StopGrace time.Duration

	// NodeName is the name of this process in Nodes and in the executor of a task. Default: the host's name.
	NodeName string

	// Address is where an operator reaches this process. Nodes shows it. Default: none.
	Address string

	// Wake is the UDP address on which a started scheduler is told of tasks that other processes save, so that they
	// start within milliseconds. ":7342" is that port at the address by which the process reaches the database; "off"
	// opens no port. A scheduler tells others in any case. docs/operations.md says what is sent, and what protects it.
	// SQLite needs none. Default: "127.0.0.1:0", for processes of this host.
	Wake string

	// Quarantine is how many executors a task may lose: with that loss it is failed instead of run again. At least 3.
	// Default: 5.
	Quarantine int

	// Retention is how long finished tasks, and entries of the audit log, are kept.
	Retention Retention

	// Migrate lets Open and New bring the tables up to date first. Any number of processes may do so at once. A SQLite
	// database that Open is given is migrated in any case. Default: false.
	Migrate bool

	// OnReplica allows a server that applies the changes of another one, as where two servers replicate each other. On
	// a replica a process runs the tasks of the primary a second time. Default: Open and New return [ErrReplica].
	OnReplica bool

	// ReadOnly lets the scheduler read and write nothing, so that it shows what is on a server that is read-only, or on
	// a replica. It is no node, and a replica may be behind. What writes returns an error. Start and Register return
	// [ErrReadOnly], and Migrate has no effect on a server. Default: false.
	ReadOnly bool

	// StartPaused pauses all tags before this process runs its first task: those that an unfinished task, a schedule or
	// a processor of this process has. Set it in the processes that work on a copy of production. The pauses stay until
	// [Scheduler.Resume] ends each. Default: false.
	StartPaused bool

	// ScheduleOwner is whose the schedules are that [Scheduler.DeclareSchedule] declares: schedules of another owner
	// are left alone. Give each program that declares schedules its own. A program that declares no schedule any more
	// retires those that it had only if its owner is set here. Default: the path of the main package.
	ScheduleOwner string

	// Revision says which of two versions of the program is newer. It is for the schedules that a program declares.
	// Default: the time of the commit that the program was built from, where go build has stored it. Without a revision
	// schedules are changed while all live processes declare the same, and none is retired.
	Revision time.Time

	// OnFailed is called when a task has failed for good: attempts used up, a permanent error, quarantine, a popped
	// task whose lease was lost in its last attempt, or claimed too late with [delaytask.LateFail]. It is also called
	// for a row that cannot be read, with [delaytask.ErrBroken] and what could be read. It runs in a goroutine of its
	// own, after the failure is stored, and not if the process dies at that moment. Default: none.
	OnFailed func(ctx context.Context, task *delaytask.Task, err error)

	// OnRescued is called when this process has taken back a task from one that died, in a goroutine of its own.
	// Default: none.
	OnRescued func(ctx context.Context, task *delaytask.Task)

	builder
}

// Retention says how long finished tasks, and entries of the audit log, stay in their tables before they are deleted.
// Negative keeps them for ever.
type Retention struct {
	Completed time.Duration // default 7 days
	Cancelled time.Duration // default 7 days
	Failed    time.Duration // default 30 days
	Audit     time.Duration // entries of the audit log; default 365 days
}

// builder lets other packages of this module bring a store and an engine of their own.
type builder = core.Builder

const day = 24 * time.Hour

// callTimeout is how long the scheduler waits for one answer of the database.
const callTimeout = 10 * time.Second

// withDefaults fills in the fields that were left out.
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
	c.Concurrency = cmp.Or(c.Concurrency, 64)
	c.TTR = cmp.Or(c.TTR, 15*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 20)
	c.LookAhead = cmp.Or(c.LookAhead, time.Second)
	c.BodyLimit = cmp.Or(c.BodyLimit, request.DefaultBodyLimit)
	c.ErrorLimit = cmp.Or(c.ErrorLimit, 8<<10)
	c.StopGrace = cmp.Or(c.StopGrace, 30*time.Second)
	c.Wake = cmp.Or(c.Wake, wake.Loopback)
	c.Quarantine = cmp.Or(c.Quarantine, 5)
	if c.Revision.IsZero() {
		_, c.Revision = program()
	}
	c.Retention.Completed = cmp.Or(c.Retention.Completed, 7*day)
	c.Retention.Cancelled = cmp.Or(c.Retention.Cancelled, 7*day)
	c.Retention.Failed = cmp.Or(c.Retention.Failed, 30*day)
	c.Retention.Audit = cmp.Or(c.Retention.Audit, 365*day)
	return c
}

// check names the first field that is out of range. It expects the defaults in place.
func (c *Config) check() error {
	if err := wake.CheckListen(c.Wake); err != nil {
		return fmt.Errorf("%w: Wake: %w", ErrInvalidConfig, err)
	}
	if !delaytask.ValidTag(c.ScheduleOwner) && c.ScheduleOwner != "" {
		return fmt.Errorf("%w: ScheduleOwner %.140q: want 1-128 bytes of A-Z a-z 0-9 . _ - : /", ErrInvalidConfig,
			c.ScheduleOwner)
	}
	return cmp.Or(
		between("Concurrency", c.Concurrency, 1, 100_000),
		between("TTR", c.TTR, time.Second, day),
		between("MaxAttempts", c.MaxAttempts, 1, 1_000_000),
		between("LookAhead", c.LookAhead, 100*time.Millisecond, time.Minute),
		between("BodyLimit", c.BodyLimit, 1, 1<<30),
		between("ErrorLimit", c.ErrorLimit, 256, 16<<20),
		between("Quarantine", c.Quarantine, 3, 1_000_000),
	)
}

func between[T cmp.Ordered](field string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%w: %s is %v, want %v to %v", ErrInvalidConfig, field, value, least, most)
	}
	return nil
}

// coreConfig says what the core of the scheduler stands on, but for its engine and what has to be released.
func (c *Config) coreConfig() core.Config {
	owner, _ := program()
	return core.Config{
		BodyLimit:   c.BodyLimit,
		Tracing:     core.Tracing{Provider: c.TracerProvider, Propagator: c.Propagator, Continues: c.ContinueTraces},
		Declared:    plan.Set{Owner: cmp.Or(c.ScheduleOwner, owner), Revision: row.At(c.Revision)},
		Named:       c.ScheduleOwner != "",
		StartPaused: c.StartPaused,
		ReadOnly:    c.ReadOnly,
	}
}

// program returns what is known of the program: the path of its main package, and the commit time of its build.
func program() (owner string, revision time.Time) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", time.Time{}
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.time" {
			revision, _ = time.Parse(time.RFC3339, setting.Value)
		}
	}
	return ownerOf(info.Path), revision
}

// ownerOf makes the name of an owner of an import path, which may hold other characters.
func ownerOf(path string) string {
	owner := strings.Map(func(r rune) rune {
		if !delaytask.ValidTag(string(r)) {
			return '_'
		}
		return r
	}, path)
	return owner[max(0, len(owner)-maxOwner):]
}

const maxOwner = 128

// engineConfig translates: a negative value, which is not the zero value of a field left out, becomes 0.
func (c *Config) engineConfig(store store.Store) engine.Config {
	cfg := engine.Config{
		Store: store, Registry: new(processor.Registry), Logger: c.Logger, CallTimeout: callTimeout,
		Nap: clock.Nap, Machine: clock.ThisMachine(),
		Concurrency: c.Concurrency, TTR: c.TTR, Timeout: max(c.Timeout, 0),
		MaxAttempts: c.MaxAttempts,
		Backoff:     c.Backoff,
		ErrorLimit:  c.ErrorLimit, Quarantine: c.Quarantine,
		LookAhead: c.LookAhead, Window: 2 * c.LookAhead, ScanEvery: 5 * time.Second, Horizon: time.Hour,
		HeapCap:  250_000,
		NodeName: c.NodeName, Address: c.Address, Heartbeat: time.Second, StopGrace: max(c.StopGrace, 0),
		Retention: find.Retention{
			Completed: max(c.Retention.Completed, 0),
			Cancelled: max(c.Retention.Cancelled, 0),
			Failed:    max(c.Retention.Failed, 0),
			Audit:     max(c.Retention.Audit, 0),
		},
		OnFailed: c.OnFailed, OnRescued: c.OnRescued,
	}
	if c.Metrics != nil {
		cfg.Metrics = c.Metrics.Recorder()
	}
	return cfg
}

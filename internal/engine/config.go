package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/find"
	"github.com/delaytask/delaytask/internal/lifecycle/clock"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// Config is what an engine runs with. Package scheduler fills in defaults and checks ranges. A field may be zero only
// where its comment says what that means.
type Config struct {
	Store    store.Store
	Registry *processor.Registry
	Logger   *slog.Logger
	Metrics  metrics.Recorder // nil for none

	CallTimeout time.Duration // longest wait for one answer of the store

	// Waker carries wake-ups between processes. Nil where none are sent.
	Waker arm.Waker

	// FileVersion returns a number that differs when another connection has changed an embedded database. Nil for a
	// server.
	FileVersion func(context.Context) (int64, error)

	// Nap sleeps for the last moment before a start, more exactly than a timer: [clock.Nap]. Nil where the time is
	// simulated.
	Nap func(time.Duration)

	// Machine tells of this machine's time. The zero value where the time is simulated.
	Machine clock.Machine

	// WithTimeout bounds an attempt. Nil for [context.WithTimeoutCause].
	WithTimeout func(context.Context, time.Duration, error) (context.Context, context.CancelFunc)

	Concurrency int               // tasks that run at once in this process
	TTR         time.Duration     // lease of a task that names none
	Timeout     time.Duration     // longest attempt of a tag that names none; 0 for no limit
	MaxAttempts int               // of a task that names none
	Backoff     processor.Backoff // of a tag that names none
	ErrorLimit  int               // bytes of error text that are kept
	Quarantine  int               // crash count that fails a task

	LookAhead time.Duration // period of the look-ahead
	Window    time.Duration // how far ahead it reads: two periods or more
	ScanEvery time.Duration // period of all passes of the scanner but the rescue
	Horizon   time.Duration // a save of this node's share due within it is armed at once
	HeapCap   int           // timers in memory

	NodeName  string        // "" for the host's name
	Address   string        // where an operator reaches this process; "" for none
	Heartbeat time.Duration // period of the node's heartbeat
	StopGrace time.Duration // how long a stop waits for running processors

	Retention find.Retention

	// The hooks of the user; nil for none.
	OnFailed  func(context.Context, *delaytask.Task, error)
	OnRescued func(context.Context, *delaytask.Task)
}

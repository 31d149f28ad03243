package run

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// deps is what the parts of this package work with.
type deps struct {
	*events.Events
	cfg      Config
	runqueue *runqueue.Queue
	arm      *arm.Arm
}

// Config says how tasks are run.
type Config struct {
	Registry *processor.Registry
	Process  row.Process
	IP       uint32 // of this process

	CallTimeout time.Duration     // longest wait for one answer of the store
	Timeout     time.Duration     // longest attempt of a tag that names none; 0 for no limit
	StopGrace   time.Duration     // how long a stop waits for running processors
	Backoff     processor.Backoff // of a tag that names none
	ErrorLimit  int               // bytes of error text that are kept

	// Nap sleeps for the last moment before a start, more exactly than a timer: [clock.Nap]. Nil where the time is
	// simulated.
	Nap func(time.Duration)

	// WithTimeout bounds an attempt: [context.WithTimeoutCause], or what a test's clock has in its place.
	WithTimeout func(context.Context, time.Duration, error) (context.Context, context.CancelFunc)

	// AtOnce says that what becomes of an attempt is written before its goroutine goes on.
	AtOnce bool
}

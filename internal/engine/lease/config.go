package lease

import (
	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// deps is what the parts of this package work with.
type deps struct {
	*events.Events
	cfg      Config
	runqueue *runqueue.Queue
	arm      *arm.Arm
	pool     *run.Pool
}

// Config says how leases end.
type Config struct {
	Registry   *processor.Registry
	Quarantine int // crash count that fails a task

	// AtOnce says that a hand-over is written before the goroutine of its processor goes on.
	AtOnce bool
}

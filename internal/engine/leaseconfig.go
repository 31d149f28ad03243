package engine

import (
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/processor"
)

// leaseDeps is what the parts of this package work with.
type leaseDeps struct {
	*events
	cfg      leaseConfig
	runqueue *runqueue.Queue
	arm      *armer
	pool     *pool
}

// leaseConfig says how leases end.
type leaseConfig struct {
	Registry   *processor.Registry
	Quarantine int // crash count at which a task is failed

	// AtOnce says that a hand-over is written before the goroutine of its processor goes on.
	AtOnce bool
}

package nodebench

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/processor"
)

// Event is what a process tells: that it is ready to go, that it serves, how many tasks it has begun since; at its end
// the rest.
type Event struct {
	Ready   bool    `json:"ready,omitempty"`
	Serving bool    `json:"serving,omitempty"`
	Ran     int     `json:"ran,omitempty"` // so far
	End     bool    `json:"end,omitempty"`
	Claims  Claims  `json:"claims,omitzero"`
	Starts  []Start `json:"starts,omitempty"`
}

// Start is the moment at which a processor began, in nanoseconds since 1970.
type Start struct {
	ID int64 `json:"i"`
	At int64 `json:"t"`
}

const tellEvery = 10 * time.Millisecond

// Serve is the process: a scheduler with defaults whose processor of the tag does nothing. It waits to be let go, and
// serves until ctx ends, which stops it as a deploy does. It returns the errors of the scheduler.
func Serve(ctx context.Context, dsn, tag string, log *slog.Logger, t *child.Teller) error {
	n := &node{}
	metrics := delaytask.NewMetrics()
	if err := n.serve(ctx, dsn, tag, delaytask.Config{Logger: log, Metrics: metrics}, t); err != nil {
		return err
	}
	claims, err := claimsOf(metrics)
	if err != nil {
		return err
	}
	t.Tell(Event{End: true, Ran: int(n.ran.Load()), Claims: claims, Starts: n.starts})
	return nil
}

// node notes what it runs.
type node struct {
	ran    atomic.Int64
	mu     sync.Mutex
	starts []Start
}

// Process implements [processor.Processor].
func (n *node) Process(_ context.Context, task *processor.Task) error {
	at := time.Now()
	n.mu.Lock()
	n.starts = append(n.starts, Start{task.ID, at.UnixNano()})
	n.mu.Unlock()
	n.ran.Add(1)
	return nil
}

// serve has stopped the scheduler when it returns: what still ran has been noted.
func (n *node) serve(ctx context.Context, dsn, tag string, cfg delaytask.Config, t *child.Teller) (err error) {
	s, err := delaytask.Open(ctx, dsn, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	if err := s.Register(tag, n); err != nil {
		return err
	}
	t.Tell(Event{Ready: true})
	if t.Await(ctx) != nil {
		return nil // stopped before it was let go
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	t.Tell(Event{Serving: true})
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for told := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if now := n.ran.Load(); now > told {
			t.Tell(Event{Ran: int(now)})
			told = now
		}
	}
}

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/scheduler"
)

// nodeEvent is what a process of a fleet tells: that it is ready, that it serves, how many tasks it has begun since; at
// its end the rest.
type nodeEvent struct {
	Ready, Serving bool
	Ran            int // so far
	End            bool
	Tried, Won     int // rows that it tried to claim, and that it won
	Starts         []nodeStart
}

// nodeStart is when a task began, in nanoseconds since 1970.
type nodeStart struct {
	ID, At int64
}

const tellEvery = 10 * time.Millisecond

// nodeChild serves a tag by a processor that does nothing. It waits for [fleet.release], and serves until ctx ends,
// which stops it as a deploy does.
func nodeChild(ctx context.Context, o order, t *child.Narrator) error {
	n := &noting{another: make(chan struct{}, 1)}
	measured := metrics.New()
	err := o.database().OnScheduler(ctx, scheduler.Config{Metrics: measured}, func(s *scheduler.Scheduler) error {
		if err := s.Register(o.Tag, n); err != nil {
			return err
		}
		t.Tell(nodeEvent{Ready: true})
		if t.Await(ctx) != nil {
			return nil // stopped before it was let go
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
		t.Tell(nodeEvent{Serving: true})
		for {
			select {
			case <-n.another: // no ticker: hundreds of wake-ups a second of all processes would be part of the load
			case <-ctx.Done():
				return nil
			}
			t.Tell(nodeEvent{Ran: n.ran()})
			_ = lateness.Pass(ctx, tellEvery)
		}
	})
	if err != nil {
		return err
	}
	end := nodeEvent{End: true, Ran: n.ran(), Starts: n.starts}
	if end.Tried, end.Won, err = claimsOf(measured); err == nil {
		t.Tell(end)
	}
	return err
}

// noting is a processor that notes what it runs.
type noting struct {
	another chan struct{} // one has run

	mu     sync.Mutex
	starts []nodeStart
}

// Process implements [processor.Processor].
func (n *noting) Process(_ context.Context, task *delaytask.Task) error {
	at := time.Now().UnixNano()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.starts = append(n.starts, nodeStart{task.ID, at})
	select {
	case n.another <- struct{}{}:
	default:
	}
	return nil
}

func (n *noting) ran() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.starts)
}

// claimsOf reads the metrics, as monitoring would.
func claimsOf(m *metrics.Metrics) (tried, won int, err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return 0, 0, err
	}
	families, err := registry.Gather()
	if err != nil {
		return 0, 0, fmt.Errorf("read the metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != "delaytask_claims_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			rows := int(series.GetCounter().GetValue())
			tried += rows
			for _, label := range series.GetLabel() {
				if label.GetName() == "result" && label.GetValue() == "won" {
					won += rows
				}
			}
		}
	}
	return tried, won, nil
}

// Package nodebench is one process of a benchmark of several on one database, and the fleet of them. Package bench
// measures with them.
package nodebench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/processor"
)

// Event is what a process reports: that it is ready, that it serves, how many tasks it has begun since; at its end the
// rest.
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

// Serve is the process: a scheduler with defaults whose processor of the tag does nothing. It waits for [Fleet.Go], and
// serves until ctx ends, which stops it as a deploy does. It returns the errors of the scheduler.
func Serve(ctx context.Context, dsn, tag string, log *slog.Logger, t *child.Narrator) error {
	n := &node{}
	measured := metrics.New()
	if err := n.serve(ctx, dsn, tag, delaytask.Config{Logger: log, Metrics: measured}, t); err != nil {
		return err
	}
	claims, err := claimsOf(measured)
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

// serve has stopped the scheduler when it returns, so that n has noted every task.
func (n *node) serve(ctx context.Context, dsn, tag string, cfg delaytask.Config, t *child.Narrator) (err error) {
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
	for reported := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if now := n.ran.Load(); now > reported {
			t.Tell(Event{Ran: int(now)})
			reported = now
		}
	}
}

// Claims are the rows that a process tried to claim, and those that it won.
type Claims struct {
	Tried int `json:"tried"`
	Won   int `json:"won"`
}

// claimsOf reads the metrics, as monitoring would.
func claimsOf(m *metrics.Metrics) (c Claims, err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return c, err
	}
	families, err := registry.Gather()
	if err != nil {
		return c, fmt.Errorf("read the metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != "delaytask_claims_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			rows := int(series.GetCounter().GetValue())
			c.Tried += rows
			for _, label := range series.GetLabel() {
				if label.GetName() == "result" && label.GetValue() == "won" {
					c.Won += rows
				}
			}
		}
	}
	return c, nil
}

// Spread is the largest deviation of a process from an even share of the tasks, in percent of that share. Without tasks
// it is 0.
func Spread(ran []int) float64 {
	all := 0
	for _, n := range ran {
		all += n
	}
	if all == 0 {
		return 0
	}
	share, worst := float64(all)/float64(len(ran)), 0.0
	for _, n := range ran {
		worst = max(worst, math.Abs(float64(n)-share))
	}
	return 100 * worst / share
}

// Wasted is how many percent of the tried claims were not won. Without tries it is 0.
func Wasted(claims []Claims) float64 {
	var all Claims
	for _, c := range claims {
		all.Tried += c.Tried
		all.Won += c.Won
	}
	if all.Tried == 0 {
		return 0
	}
	return 100 * float64(all.Tried-all.Won) / float64(all.Tried)
}

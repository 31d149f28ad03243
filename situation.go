package delaytask

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

// situation is what the tables of nodes and tags say at one moment.
type situation struct {
	now    row.Time
	served map[string]bool // by a live node that is not leaving
	paused map[string]bool
}

func (s *Scheduler) situation(ctx context.Context) (situation, error) {
	nodes, reading, err := s.store.Nodes(ctx)
	if err != nil {
		return situation{}, fmt.Errorf("read the nodes: %w", err)
	}
	tags, err := s.store.Tags(ctx)
	if err != nil {
		return situation{}, fmt.Errorf("read the tags: %w", err)
	}
	now := situation{now: reading.Time, served: map[string]bool{}, paused: map[string]bool{}}
	for _, n := range nodes {
		if n.Leaving || !alive(n, reading.Time) {
			continue
		}
		for _, tag := range n.Tags {
			now.served[tag] = true
		}
	}
	for _, t := range tags {
		if t.Paused {
			now.paused[t.Tag] = true
		}
	}
	return now, nil
}

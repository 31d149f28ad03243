package delaytask

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Node is a process that shares the database.
type Node = processor.Node

// Nodes returns the processes that share the database, by number. One that died is listed until its number is needed.
func (s *Scheduler) Nodes(ctx context.Context) ([]Node, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	found, reading, err := s.store.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	nodes := make([]Node, len(found))
	for i, n := range found {
		nodes[i] = Node{
			Number: n.Number, Name: n.Name, PID: n.PID, Address: n.Address, Version: n.Version, Tags: n.Tags, Leaving: n.Leaving,
			Alive: alive(n, reading.Time), Heartbeat: n.Heartbeat.Std(),
		}
	}
	return nodes, nil
}

func alive(n row.Node, now row.Time) bool { return now.Sub(n.Heartbeat) <= cluster.LeaseTime }

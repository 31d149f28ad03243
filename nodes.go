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

// Share is which part of a tag's new tasks a node has timers for.
type Share = processor.Share

// Nodes returns the processes that share the database, by number. One that died is listed until its number is needed.
func (s *Scheduler) Nodes(ctx context.Context) ([]Node, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	found, reading, err := s.store.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	// Nodes judge each other in the same way.
	view := cluster.NewView("", found, reading.Time, cluster.Rule{Alive: 2 * s.heartbeat, Gone: cluster.NewProcess().Gone})
	nodes := make([]Node, len(found))
	for i, n := range found {
		nodes[i] = Node{
			Number: n.Number, Name: n.Name, PID: n.PID, Address: n.Address, Version: n.Version, Tags: n.Tags,
			Shares: shares(view, n), Leaving: n.Leaving, Alive: alive(n, reading.Time), Heartbeat: n.Heartbeat.Std(),
		}
	}
	return nodes, nil
}

func shares(view *cluster.View, n row.Node) []Share {
	shares := make([]Share, len(n.Tags))
	for i, tag := range n.Tags {
		shares[i].Tag = tag
		shares[i].Position, shares[i].Total = view.Share(tag, n.Number)
	}
	return shares
}

func alive(n row.Node, now row.Time) bool { return now.Sub(n.Heartbeat) <= cluster.LeaseTime }

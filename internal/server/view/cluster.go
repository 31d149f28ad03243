package view

import (
	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// Nodes lists the processes that share the database.
func Nodes(nodes []delaytask.Node) []wire.Node {
	views := make([]wire.Node, len(nodes))
	for i, n := range nodes {
		views[i] = wire.Node{
			Number: n.Number, Name: n.Name, PID: n.PID, Address: n.Address, Version: n.Version, State: nodeState(n),
			Heartbeat: wire.Time(n.Heartbeat), Tags: append([]string{}, n.Tags...), Shares: make([]wire.Share, len(n.Shares)),
		}
		for k, share := range n.Shares {
			views[i].Shares[k] = wire.Share(share)
		}
	}
	return views
}

func nodeState(n delaytask.Node) string {
	switch {
	case !n.Alive:
		return "silent"
	case n.Leaving:
		return "leaving"
	default:
		return "alive"
	}
}

// Stats tells of every tag.
func Stats(stats []delaytask.TagStats) []wire.TagStats {
	views := make([]wire.TagStats, len(stats))
	for i, s := range stats {
		counts := make(map[string]int64, len(s.Counts))
		for status, n := range s.Counts {
			counts[string(status)] = n
		}
		views[i] = wire.TagStats{
			Tag: s.Tag, Counts: counts, OldestPending: wire.Time(s.OldestPending), Served: s.Served, Paused: s.Paused,
			Lateness: Lateness(s.Lateness),
		}
	}
	return views
}

// Lateness is absent where nothing has run.
func Lateness(l delaytask.Lateness) *wire.Lateness {
	if l.Samples == 0 {
		return nil
	}
	return &wire.Lateness{
		Samples: l.Samples,
		P50:     Milliseconds(l.P50), P95: Milliseconds(l.P95), P99: Milliseconds(l.P99), Max: Milliseconds(l.Max),
	}
}

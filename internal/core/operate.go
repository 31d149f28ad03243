package core

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

func (c *Core) Tags(ctx context.Context) ([]report.TagState, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	now, err := c.clusterState(ctx)
	if err != nil {
		return nil, err
	}
	known := maps.Clone(now.served)
	for tag := range now.paused {
		known[tag] = now.served[tag]
	}
	tags := make([]report.TagState, 0, len(known))
	for _, tag := range slices.Sorted(maps.Keys(known)) {
		tags = append(tags, report.TagState{Tag: tag, Served: now.served[tag], Paused: now.paused[tag].Paused,
			Reason: now.paused[tag].Reason})
	}
	return tags, nil
}

func (c *Core) Pause(ctx context.Context, tag string, opts ...delaytask.PauseOption) error {
	pause, err := request.NewPause(opts...)
	if err != nil {
		return err
	}
	return c.onTag(ctx, tag, "pause", func(ctx context.Context, tag string) error {
		return c.engine.Pause(ctx, tag, row.Shorten(pause.Reason, mostReason))
	})
}

const mostReason = 1000

// Seen reports whether a live process serves the tag, or a task or a schedule has it.
func (c *Core) Seen(ctx context.Context, tag string) (bool, error) {
	now, err := c.clusterState(ctx)
	if err != nil || now.served[tag] {
		return true, err
	}
	var pairs []row.Pair
	for _, status := range listing.Statuses {
		pairs = append(pairs, row.Pair{Status: status, Tag: tag})
	}
	counts, err := c.store.Count(ctx, pairs, 1)
	if err != nil || slices.Max(counts) > 0 {
		return true, err
	}
	schedules, _, err := c.store.Schedules(ctx, row.ScheduleFilter{Tag: tag, Limit: 1, NoBodies: true})
	return len(schedules) > 0, err
}

func (c *Core) Resume(ctx context.Context, tag string) error {
	return c.onTag(ctx, tag, "resume", c.engine.Resume)
}

func (c *Core) onTag(ctx context.Context, tag, op string, do func(context.Context, string) error) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if !delaytask.ValidTag(tag) {
		return fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, tag)
	}
	if err := do(ctx, tag); err != nil {
		return fmt.Errorf("%s tag %s: %w", op, tag, err)
	}
	return nil
}

func (c *Core) Wake(ctx context.Context, tags ...string) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	for _, tag := range tags {
		if !delaytask.ValidTag(tag) {
			return fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, tag)
		}
	}
	c.engine.Wake(tags)
	return nil
}

// Nodes also returns, with each node, the token of its process, which the executors of its tasks hold.
func (c *Core) Nodes(ctx context.Context) ([]report.Node, []string, error) {
	if err := c.enter(ctx); err != nil {
		return nil, nil, err
	}
	found, reading, err := c.store.Nodes(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the nodes: %w", err)
	}
	// Nodes go by the same rule.
	view := cluster.NewView("", found, reading.Time,
		cluster.Rule{Alive: 2 * c.heartbeat, Gone: cluster.NewProcess().Gone})
	nodes, tokens := make([]report.Node, len(found)), make([]string, len(found))
	for i, n := range found {
		nodes[i] = report.Node{
			Number: n.Number, Name: n.Name, PID: n.PID, Address: n.Address, Version: n.Version, Tags: n.Tags,
			Shares: shares(view, n), Wake: n.Wake.Address, UnreachableFrom: unreachableFrom(n, found, reading.Time),
			Leaving: n.Leaving, Alive: alive(n, reading.Time), Heartbeat: n.Heartbeat.Std(),
		}
		tokens[i] = n.Token
	}
	return nodes, tokens, nil
}

func shares(view *cluster.View, n row.Node) []report.Share {
	shares := make([]report.Share, len(n.Tags))
	for i, tag := range n.Tags {
		shares[i].Tag = tag
		shares[i].Position, shares[i].Total = view.Share(tag, n.Number)
	}
	return shares
}

// unreachableFrom lists the live nodes whose wake-ups a node does not acknowledge.
func unreachableFrom(n row.Node, all []row.Node, now row.Time) (from []int) {
	for _, other := range all {
		if alive(other, now) && slices.Contains(other.Wake.Unreachable, n.Token) {
			from = append(from, other.Number)
		}
	}
	return from
}

func alive(n row.Node, now row.Time) bool { return cluster.IsAlive(n, now) }

// clusterState holds the tables of nodes and tags at one moment.
type clusterState struct {
	now    row.Time
	nodes  []row.Node
	served map[string]bool // by a live node that is not leaving
	paused map[string]row.TagState
}

func (c *Core) clusterState(ctx context.Context) (clusterState, error) {
	nodes, reading, err := c.store.Nodes(ctx)
	if err != nil {
		return clusterState{}, fmt.Errorf("read the nodes: %w", err)
	}
	tags, _, err := c.store.Tags(ctx)
	if err != nil {
		return clusterState{}, fmt.Errorf("read the tags: %w", err)
	}
	now := clusterState{now: reading.Time, nodes: nodes, served: map[string]bool{}, paused: map[string]row.TagState{}}
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
			now.paused[t.Tag] = t
		}
	}
	return now, nil
}

package arm

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
)

// Census knows which nodes live.
type Census struct {
	*deps
	Token string // of this node
	Name  string
	gone  func(row.Node) bool
	last  atomic.Pointer[Count]
}

// Count is what one read of the nodes has found. It never changes.
type Count struct {
	View   *cluster.View
	Living map[int]row.Node // by number
	Silent []row.Node       // the others
	Self   bool             // this node is among them
	number int              // of this node, if it is
	pops   map[string][]int // the nodes where a tag was popped lately, this one left out
	Time   row.Time         // on the database's clock
	read   time.Time
}

// Read reads which nodes live, how they share the tags, and the database's clock.
func (c *Census) Read(ctx context.Context) (*Count, error) {
	began := time.Now()
	nodes, reading, err := c.Store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	alive := 2 * c.cfg.Heartbeat
	rule := cluster.Rule{Alive: alive, Near: c.ShortTerm(), Gone: c.gone}
	n := &Count{
		View:   cluster.NewView(c.Token, nodes, reading.Time, rule),
		Living: map[int]row.Node{}, pops: map[string][]int{}, Time: reading.Time, read: began,
	}
	for _, node := range nodes {
		if reading.Time.Sub(node.Heartbeat) <= alive && !c.gone(node) {
			n.Living[node.Number] = node
			if node.Token == c.Token {
				n.Self, n.number = true, node.Number
				continue
			}
			for _, tag := range popped(node) {
				n.pops[tag] = append(n.pops[tag], node.Number)
			}
			continue
		}
		n.Silent = append(n.Silent, node)
	}
	c.Metrics.SetNodes(len(n.Living))
	c.last.Store(n)
	return n, nil
}

// recent returns what was read within one and a half look-aheads, or reads it.
func (c *Census) recent(ctx context.Context) (*Count, error) {
	if n := c.last.Load(); n != nil && time.Since(n.read) < c.cfg.LookAhead*3/2 {
		return n, nil
	}
	ctx, cancel := c.CallIn(ctx)
	defer cancel()
	return c.Read(ctx)
}

// SilentTags returns the tags of nodes that have fallen silent since the moment.
func (c *Census) SilentTags(since row.Time) (tags []string) {
	if n := c.last.Load(); n != nil {
		for _, node := range n.Silent {
			if node.Heartbeat >= since {
				tags = append(tags, node.Tags...)
			}
		}
	}
	return tags
}

// Alone reports whether no other node is known to live.
func (c *Census) Alone() bool {
	n := c.last.Load()
	return n == nil || len(n.Living) <= 1
}

// popped returns the tags that were popped at the node lately.
func popped(n row.Node) []string {
	if slices.Contains(n.Wake.Pops, row.AllTags) {
		return n.Tags
	}
	return n.Wake.Pops
}

// Nodes returns the live nodes, and the database's time of that reading. known is false until this node has found
// itself among them.
func (c *Census) Nodes() (live []row.Node, now row.Time, known bool) {
	n := c.last.Load()
	if n == nil || !n.Self {
		return nil, 0, false
	}
	return slices.Collect(maps.Values(n.Living)), n.Time, true
}

package engine

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
)

// census knows which nodes live.
type census struct {
	*armDeps
	token string // of this node
	name  string
	gone  func(row.Node) bool
	last  atomic.Pointer[count]
}

// count is what one read of the nodes has found. It never changes.
type count struct {
	view   *cluster.View
	living map[int]row.Node // by number
	silent []row.Node       // the others
	self   bool             // this node is among them
	number int              // of this node, if it is
	pops   map[string][]int // the nodes where a tag was popped lately, this one left out
	time   row.Time         // on the database's clock
	read   time.Time
}

// read reads which nodes live, how they share the tags, and the database's clock.
func (c *census) read(ctx context.Context) (*count, error) {
	began := time.Now()
	nodes, reading, err := c.store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	alive := 2 * c.cfg.Heartbeat
	rule := cluster.Rule{Alive: alive, Near: c.cfg.shortTerm(), Gone: c.gone}
	n := &count{
		view:   cluster.NewView(c.token, nodes, reading.Time, rule),
		living: map[int]row.Node{}, pops: map[string][]int{}, time: reading.Time, read: began,
	}
	for _, node := range nodes {
		if reading.Time.Sub(node.Heartbeat) <= alive && !c.gone(node) {
			n.living[node.Number] = node
			if node.Token == c.token {
				n.self, n.number = true, node.Number
				continue
			}
			for _, tag := range popped(node) {
				n.pops[tag] = append(n.pops[tag], node.Number)
			}
			continue
		}
		n.silent = append(n.silent, node)
	}
	c.Metrics.SetNodes(len(n.living))
	c.last.Store(n)
	return n, nil
}

// recent returns what was read within one and a half look-aheads, or reads it.
func (c *census) recent(ctx context.Context) (*count, error) {
	if n := c.last.Load(); n != nil && time.Since(n.read) < c.cfg.LookAhead*3/2 {
		return n, nil
	}
	ctx, cancel := c.CallIn(ctx)
	defer cancel()
	return c.read(ctx)
}

// alone reports whether no other node is known to live.
func (c *census) alone() bool {
	n := c.last.Load()
	return n == nil || len(n.living) <= 1
}

// popped returns the tags that were popped at the node lately.
func popped(n row.Node) []string {
	if slices.Contains(n.Wake.Pops, row.AllTags) {
		return n.Tags
	}
	return n.Wake.Pops
}

// nodes returns the live nodes, and the database's time at which they were. It does not know them before this node has
// found itself among them.
func (c *census) nodes() (live []row.Node, now row.Time, known bool) {
	n := c.last.Load()
	if n == nil || !n.self {
		return nil, 0, false
	}
	return slices.Collect(maps.Values(n.living)), n.time, true
}

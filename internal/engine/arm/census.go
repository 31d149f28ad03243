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
	beats
	Process    cluster.Process // this one
	neighbours *cluster.Neighbours
	tags       *Tags
	last       atomic.Pointer[Count]
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

	nodes []row.Node      // all, as they were read
	then  row.Time        // when that was
	sum   int64           // their membership then
	ended map[string]bool // by token: nodes of this host whose processes had ended
}

// Read reads which nodes live, how they share the tags, the database's clock, and which tags are paused. What the nodes
// say of themselves is read only when some of it has changed, because each node asks every second.
func (c *Census) Read(ctx context.Context) (*Count, error) {
	began, alive := time.Now(), c.alive(c.cfg.Heartbeat, c.Many())
	cluster, err := c.Store.Cluster(ctx, alive)
	if err != nil {
		return nil, err
	}
	c.noteRead(time.Since(began))
	c.tags.take(cluster.Tags, cluster.Look)
	last, sum, reading := c.last.Load(), cluster.Members, cluster.Reading
	if last == nil || last.sum != sum {
		nodes, reading, err := c.Store.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		return c.count(nodes, sum, reading.Time, began, alive), nil
	}
	next := *last
	next.Time, next.read = reading.Time, began
	if !maps.Equal(c.neighbours.Ended(last.nodes), last.ended) {
		return c.count(last.beaten(reading.Time, alive), sum, reading.Time, began, alive), nil
	}
	next.Living = maps.Clone(last.Living)
	for number, n := range next.Living {
		n.Heartbeat = reading.Time
		next.Living[number] = n
	}
	c.last.Store(&next)
	return &next, nil
}

// beaten returns the nodes with fresh heartbeats where these were fresh: the same ones are now.
func (n *Count) beaten(now row.Time, alive time.Duration) []row.Node {
	nodes := slices.Clone(n.nodes)
	for i := range nodes {
		if n.then.Sub(nodes[i].Heartbeat).Abs() <= alive {
			nodes[i].Heartbeat = now
		}
	}
	return nodes
}

func (c *Census) count(nodes []row.Node, sum int64, now row.Time, began time.Time, alive time.Duration) *Count {
	ended := c.neighbours.Ended(nodes)
	rule := cluster.Rule{
		Alive: alive, Near: c.ShortTerm(), Gone: func(n row.Node) bool { return ended[n.Token] },
	}
	n := &Count{
		View:   cluster.NewView(c.Process.Token, nodes, now, rule),
		Living: map[int]row.Node{}, pops: map[string][]int{}, Time: now, read: began,
		nodes: nodes, then: now, sum: sum, ended: ended,
	}
	for _, node := range nodes {
		if !ended[node.Token] && now.Sub(node.Heartbeat) <= alive {
			n.Living[node.Number] = node
			if node.Token == c.Process.Token {
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
	return n
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

// fewNodes read the table at full pace.
const fewNodes = 8

// Crowd returns how many times longer a node pauses between what it reads often, so that many nodes together read no
// more than a few.
func (c *Census) Crowd() time.Duration {
	return (c.Alive() + fewNodes - 1) / fewNodes
}

// ManyNodes are too many for what helps few to start on time: reads that overlap, and any node that takes what any
// other has left.
const ManyNodes = 25

// Many reports whether so many nodes live.
func (c *Census) Many() bool { return c.Alive() >= ManyNodes }

// Alive returns how many nodes are known to live, at least 1.
func (c *Census) Alive() time.Duration {
	if n := c.last.Load(); n != nil {
		return time.Duration(max(len(n.Living), 1))
	}
	return 1
}

// ServedTags returns the tags that live nodes serve, some more than once.
func (c *Census) ServedTags() (tags []string) {
	if n := c.last.Load(); n != nil {
		for _, node := range n.Living {
			tags = append(tags, node.Tags...)
		}
	}
	return tags
}

// Alone reports whether no other node is known to live.
func (c *Census) Alone() bool {
	n := c.last.Load()
	return n == nil || len(n.Living) <= 1
}

// Rank returns the place of this node among the live ones that serve tags and stay, in the order of their numbers, and
// how many these are. It is false when this node is not one of them.
func (c *Census) Rank() (rank, of int, known bool) {
	n := c.last.Load()
	if n == nil || !n.Self {
		return 0, 0, false
	}
	for number, node := range n.Living {
		if len(node.Tags) == 0 || node.Leaving {
			continue
		}
		of++
		if number < n.number {
			rank++
		}
		known = known || number == n.number
	}
	return rank, of, known
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

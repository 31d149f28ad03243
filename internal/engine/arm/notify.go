package arm

import (
	"context"
	"slices"
	"sync"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// Waker carries wake-ups between the processes that share the database. Package wake has the one of real networks.
type Waker interface {
	// Listen begins to receive for the process with the token. hear is called with what others tell; it does not wait.
	Listen(token string, hear func([]wake.Notice))
	// Notify notifies a process, as well as it can. It does not wait.
	Notify(n row.Node, notices ...wake.Notice)
	// Row returns what the row of the process says.
	Row(token string) row.Wake
	Close()
}

// Notifier tells other nodes of rows that they cannot see in time: those due soon, of a tag that this process does not
// run. It works outside of the path of a save, and reads the nodes only while there is something to send.
type Notifier struct {
	*deps
	census *Census
	wake   chan struct{}

	sending chan struct{} // holds an element while something is sent: a stop waits for that

	mu   sync.Mutex
	open map[string]*unsent // by tag
}

// unsent is what other nodes are to know of a tag.
type unsent struct {
	from, to row.Time
	rows     []row.Due
	all      bool // there may be rows of every node
	state    bool // the tag was paused or resumed
}

const (
	unsentTags = 10_000
	unsentRows = 200 // of a tag; beyond it all nodes are notified
)

func newNotifier(c *deps, census *Census) *Notifier {
	return &Notifier{
		deps: c, census: census,
		wake: make(chan struct{}, 1), sending: make(chan struct{}, 1), open: map[string]*unsent{},
	}
}

// row tells of one row, soon.
func (t *Notifier) row(d row.Due) {
	t.note(d.Tag, d.Due, d.Due, func(u *unsent) {
		u.all = u.all || len(u.rows) == unsentRows
		if !u.all {
			u.rows = append(u.rows, d)
		}
	})
}

// Tag tells all nodes that they may not know of rows of the tag that are due already or soon.
func (t *Notifier) Tag(tag string, state bool) {
	now := t.Now()
	from, to := now.Add(-runqueue.Overdue), now.Add(t.ShortTerm())
	t.note(tag, from, to, func(u *unsent) { u.all, u.state = true, u.state || state })
}

func (t *Notifier) note(tag string, from, to row.Time, change func(*unsent)) {
	if t.cfg.Waker == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.open[tag]
	if u == nil {
		if len(t.open) == unsentTags {
			return // the nodes find the rows in the table, later
		}
		u = &unsent{from: from, to: to}
		t.open[tag] = u
	}
	u.from, u.to = min(u.from, from), max(u.to, to)
	change(u)
	table.Signal(t.wake)
}

// Loop sends what there is to tell, until ctx ends.
func (t *Notifier) Loop(ctx context.Context) {
	for {
		select {
		case <-t.wake:
			if t.NotifyAll(ctx) != nil {
				lifecycle.Sleep(ctx, lifecycle.Backoff(6)) // not a failing read for each save
			}
		case <-ctx.Done():
			return
		}
	}
}

// NotifyAll sends what is to be sent. When the nodes cannot be read, they find the rows in the table, later.
func (t *Notifier) NotifyAll(ctx context.Context) error {
	select {
	case t.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.sending }()
	t.mu.Lock()
	open := t.open
	t.open = make(map[string]*unsent, len(open))
	t.mu.Unlock()
	if len(open) == 0 {
		return nil
	}
	count, err := t.census.recent(ctx)
	if err != nil {
		return err
	}
	byNode := map[int][]wake.Notice{}
	for tag, u := range open {
		for number, notices := range u.address(tag, count) {
			byNode[number] = append(byNode[number], notices...)
		}
	}
	for number, notices := range byNode {
		if n, lives := count.Living[number]; lives && n.Token != t.census.Process.Token {
			t.cfg.Waker.Notify(n, notices...)
		}
	}
	return nil
}

// address returns which node is sent what: to the one whose share a row is, and to those where the tag is popped.
func (u *unsent) address(tag string, c *Count) map[int][]wake.Notice {
	byNode := map[int][]wake.Notice{}
	if u.all {
		for _, number := range c.View.Servers(tag) {
			byNode[number] = []wake.Notice{{Tag: tag, From: u.from, To: u.to, State: u.state}}
		}
		return byNode
	}
	for _, d := range u.rows {
		owner, found := c.owner(d)
		if !found {
			continue
		}
		n := wake.Notice{Tag: tag, From: d.Due, To: d.Due, Share: owner.Share, Of: owner.Of}
		old := byNode[owner.Number]
		given := func(o wake.Notice) bool { return (o.Of == 1) == (n.Of == 1) }
		if at := slices.IndexFunc(old, given); at >= 0 {
			if !n.SameRows(old[at]) { // of more slots: those that are its own by its view
				old[at].Share, old[at].Of, n.Share, n.Of = 0, 0, 0, 0
			}
			old[at] = old[at].Merge(n)
		} else {
			byNode[owner.Number] = append(old, n)
		}
	}
	for _, number := range c.pops[tag] {
		byNode[number] = append(byNode[number], wake.Notice{Tag: tag, From: u.from, To: u.to})
	}
	return byNode
}

// owner returns the other node that arms the row. One that this node would have armed, which leaves, goes to any other.
func (c *Count) owner(d row.Due) (cluster.Owner, bool) {
	owner, found := c.View.Owner(d.ID, d.Due, d.Tag)
	if !found || !c.Self || owner.Number != c.number {
		return owner, found
	}
	others := slices.DeleteFunc(slices.Clone(c.View.Servers(d.Tag)), func(n int) bool { return n == c.number })
	if len(others) == 0 {
		return owner, false
	}
	return cluster.Owner{Number: others[ids.OneOf(d.ID, len(others))], Of: 1}, true
}

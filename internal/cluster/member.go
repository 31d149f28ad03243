package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	// LeaseTime is how long a node keeps its number without a heartbeat.
	LeaseTime = 5 * time.Second
	// forgetAfter is the age of a heartbeat after which the next node that joins removes the row.
	forgetAfter = time.Hour
	// joinTries bounds how many numbers one Join asks for; others may be joining at the same moment.
	joinTries = 16
)

// ErrNoFreeNumber is returned when live processes hold all node numbers.
var ErrNoFreeNumber = errors.New("no free node number: at most 512 processes can share one database")

// Registry is what a member needs of the table of nodes.
type Registry interface {
	// Nodes returns all nodes and a reading of the clock that their heartbeats are judged by.
	Nodes(ctx context.Context) ([]row.Node, row.Reading, error)
	// Join leases n.Number for n.Token, or returns false when another token holds it whose heartbeat is younger than
	// staleAfter.
	Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error)
	// Beat renews the lease and stores n, or returns false when n.Token no longer holds n.Number.
	Beat(ctx context.Context, n row.Node) (bool, error)
	// Leave deletes the rows of the tokens.
	Leave(ctx context.Context, tokens []string) error
}

// Member is this process in the registry. It holds a leased node number as long as Beat is called about every second.
type Member struct {
	registry Registry
	process  Process
	ids      *ids.Source // carries the number as long as its lease holds

	exchange chan struct{} // holds an element during an exchange with the registry: a late Beat must not undo a Leave

	mu        sync.Mutex
	node      row.Node
	joined    bool      // node.Number is ours unless the lease ran out
	peers     int       // the nodes that held a number when this one joined
	confirmed time.Time // taken before the last request that the registry confirmed; has a monotonic reading
	left      bool
}

// MemberConfig describes the process to the other nodes.
type MemberConfig struct {
	Process Process
	Address string      // where people reach the process, or ""
	Version string      // of the program
	IDs     *ids.Source // gets the number, for as long as its lease holds; its own number is never leased
}

// Join leases a free node number. A number of a process of this host that has ended is free at once, any other when its
// node was silent for [LeaseTime]. It returns [ErrNoFreeNumber] or an error of the registry.
func Join(ctx context.Context, registry Registry, cfg MemberConfig) (*Member, error) {
	p := cfg.Process
	m := &Member{
		registry: registry,
		process:  p,
		ids:      cfg.IDs,
		exchange: make(chan struct{}, 1),
		node: row.Node{
			Token: p.Token, Name: p.Name, Host: p.Host, PID: p.PID, StartedAt: p.StartedAt,
			Address: cfg.Address, Version: cfg.Version,
		},
	}
	if err := m.join(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Peers returns how many nodes were there when this one joined. Some of them may have just ended.
func (m *Member) Peers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers
}

// Silent returns how long ago the last request began that the registry confirmed.
func (m *Member) Silent() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.confirmed)
}

// SetTags says which tags the node serves, from the next Beat on.
func (m *Member) SetTags(tags []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Tags = slices.Sorted(slices.Values(tags))
}

// SetWake says how the node is told of rows, from the next Beat on.
func (m *Member) SetWake(w row.Wake) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Wake = w
}

// SetDeclares says which schedules the program declares, from the next Beat on.
func (m *Member) SetDeclares(d row.Declares) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Declares = d
}

// SetLeaving says that the node takes no new tasks, from the next Beat on.
func (m *Member) SetLeaving() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Leaving = true
}

// Beat tells the registry that the node is alive. When another node has taken the number meanwhile, Beat leases another
// one.
func (m *Member) Beat(ctx context.Context) error {
	if err := m.beginExchange(ctx); err != nil {
		return err
	}
	defer m.endExchange()

	node, joined, left := m.snapshot()
	if left {
		return nil
	}
	if !joined {
		return m.join(ctx)
	}
	sent := time.Now()
	held, err := m.registry.Beat(ctx, node)
	if err != nil {
		return fmt.Errorf("send the heartbeat of node %d: %w", node.Number, err)
	}
	if !held {
		m.lost()
		return m.join(ctx)
	}
	m.confirm(node.Number, sent)
	return nil
}

// Leave gives the number back. Later calls of Beat do nothing.
func (m *Member) Leave(ctx context.Context) error {
	if err := m.beginExchange(ctx); err != nil {
		return err
	}
	defer m.endExchange()

	m.mu.Lock()
	m.left, m.joined = true, false
	m.ids.EndLease()
	m.mu.Unlock()
	if err := m.registry.Leave(ctx, []string{m.process.Token}); err != nil {
		return fmt.Errorf("leave the registry of nodes: %w", err)
	}
	return nil
}

// join leases any free number.
func (m *Member) join(ctx context.Context) error {
	nodes, reading, err := m.registry.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("read the registry of nodes: %w", err)
	}
	if rest, dead := m.splitDead(nodes, reading.Time); len(dead) > 0 {
		switch err := m.registry.Leave(ctx, dead); {
		case err == nil:
			nodes = rest
		case row.ClassOf(err) != row.ClassLocked: // while a transaction holds one of them, they stay
			return fmt.Errorf("remove dead nodes from the registry: %w", err)
		}
	}
	free := freeNumbers(nodes, reading.Time)
	m.countPeers(nodes, reading.Time)
	for _, number := range free[:min(len(free), joinTries)] {
		node, _, _ := m.snapshot()
		node.Number = number
		sent := time.Now()
		won, err := m.registry.Join(ctx, node, LeaseTime)
		if err != nil {
			return fmt.Errorf("lease node number %d: %w", number, err)
		}
		if won {
			m.confirm(number, sent)
			return nil
		}
	}
	return ErrNoFreeNumber
}

// splitDead separates nodes that have certainly ended, or were silent for very long, from those that may live.
func (m *Member) splitDead(nodes []row.Node, now row.Time) (rest []row.Node, dead []string) {
	for _, n := range nodes {
		if m.process.Gone(n) || now.Sub(n.Heartbeat) > forgetAfter {
			dead = append(dead, n.Token)
		} else {
			rest = append(rest, n)
		}
	}
	return rest, dead
}

// freeNumbers returns the numbers that can be leased, in random order, so that nodes that start together rarely ask for
// the same. Numbers of silent nodes come last, because such a node may wake up.
func freeNumbers(nodes []row.Node, now row.Time) []int {
	held, silent := make(map[int]bool), make(map[int]bool)
	for _, n := range nodes {
		if now.Sub(n.Heartbeat) > LeaseTime {
			silent[n.Number] = true
		} else {
			held[n.Number] = true
		}
	}
	var free, taken []int
	for _, number := range rand.Perm(ids.LeasedNodes) {
		switch {
		case silent[number]:
			taken = append(taken, number)
		case !held[number]:
			free = append(free, number)
		}
	}
	return append(free, taken...)
}

// beginExchange waits until no other exchange with the registry is in progress.
func (m *Member) beginExchange(ctx context.Context) error {
	select {
	case m.exchange <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another exchange with the registry of nodes: %w", ctx.Err())
	}
}

func (m *Member) endExchange() { <-m.exchange }

func (m *Member) snapshot() (node row.Node, joined, left bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node, m.joined, m.left
}

func (m *Member) countPeers(nodes []row.Node, now row.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peers = 0
	for _, n := range nodes {
		if isFresh(n, now, LeaseTime) {
			m.peers++
		}
	}
}

func (m *Member) confirm(number int, sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Number, m.joined, m.confirmed = number, true, sent
	m.ids.Lease(number, sent.Add(LeaseTime))
}

func (m *Member) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined = false
	m.ids.EndLease()
}

// Package proxy is a connection between a process and its MySQL server that loses what networks lose: the reply to a
// chosen statement, the request, whole connections, or everything for a while. It reads enough of the protocol to know
// which statement it carries. Slow, narrow and torn networks are toxiproxy's.
package proxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// Proxy carries the connections of one process.
type Proxy struct {
	target   func() string
	listener net.Listener
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	links    sync.WaitGroup

	network *network
	gate    gate
	made    atomic.Int64 // connections

	mu    sync.Mutex
	open  map[*link]struct{}
	traps []*Trap
}

// New listens on an address, whose port may be 0, and carries what arrives to the target, which may be another one for
// each connection. It returns an error when it cannot listen.
func New(ctx context.Context, listen string, target func() string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for a proxy: %w", err)
	}
	p := &Proxy{target: target, listener: listener, network: newNetwork(), open: map[*link]struct{}{}}
	p.ctx, p.end = context.WithCancel(ctx)
	p.links.Go(p.accept)
	return p, nil
}

func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close resets all connections and ends.
func (p *Proxy) Close() error {
	p.end()
	err := p.listener.Close()
	p.Heal()
	p.Recover()
	p.Reset()
	p.links.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.links.Go(func() { p.carry(client.(*net.TCPConn)) })
	}
}

func (p *Proxy) carry(client *net.TCPConn) {
	if p.gate.pass(p.ctx) != nil {
		reset(client)
		return
	}
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.target())
	if err != nil {
		reset(client) // as the server's own machine would
		return
	}
	p.made.Add(1)
	l := &link{proxy: p, client: client, server: server.(*net.TCPConn)}
	var carried *sync.WaitGroup
	l.from, l.to, carried = p.network.lay(client)
	p.mu.Lock()
	p.open[l] = struct{}{}
	p.mu.Unlock()
	var ways sync.WaitGroup
	ways.Go(l.requests)
	ways.Go(l.replies)
	ways.Wait()
	carried.Wait()
	p.mu.Lock()
	delete(p.open, l)
	p.mu.Unlock()
}

// Reset cuts all connections, as a firewall that forgets them does. It returns how many there were, and on how many of
// them a statement was waiting for its reply.
func (p *Proxy) Reset() (all, busy int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.open {
		all++
		if l.busy.Load() {
			busy++
		}
		l.abort()
	}
	return all, busy
}

// Busy is on how many connections a statement is waiting for its reply.
func (p *Proxy) Busy() (busy int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.open {
		if l.busy.Load() {
			busy++
		}
	}
	return busy
}

// Cut lets nothing through, without an error to either side: packets wait, as in a network that sends them again and
// again. Heal delivers them.
func (p *Proxy) Cut() { p.gate.close() }

func (p *Proxy) Heal() { p.gate.open() }

// Made is how many connections the process has made so far that led to the server.
func (p *Proxy) Made() int64 { return p.made.Load() }

// gate is open, or blocks until it is.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil: it is open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return nil
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return errClosed
	}
}

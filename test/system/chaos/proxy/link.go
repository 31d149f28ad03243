package proxy

import (
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// link is one connection of the client, and the one to the server that it is carried by.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	from           *io.PipeReader // the client, through the network
	to             *io.PipeWriter // likewise
	busy           atomic.Bool    // a statement waits for its reply

	mu   sync.Mutex
	trap *Trap   // whose statement is under way
	kind Kind    // of that statement
	ids  []int64 // that it names, or for a commit the statements since the one before
}

// requests carries what the client sends, and its end, through the network.
func (l *link) requests() {
	defer func() {
		_ = l.from.Close() // a pipe's never fails
		reset(l.client)
		_ = l.proxy.gate.pass(l.proxy.ctx) // a closed proxy resets all the same
		reset(l.server)
	}()
	var buffer []byte
	for {
		p, err := readPacket(l.from, &buffer)
		if err != nil {
			return
		}
		if statement := p.command(); statement != "" && !l.send(statement) {
			return
		}
		if l.proxy.deliver(l.server, p) != nil {
			return
		}
	}
}

// send looks at a statement on its way, and returns false when it must not arrive.
func (l *link) send(statement string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := kindOf(statement)
	if ids := idsOf(statement); kind != Commit && len(ids) > 0 {
		l.ids = ids
	}
	l.busy.Store(true)
	l.kind = kind
	l.trap = l.proxy.spring(kind)
	if l.trap == nil || l.trap.loses != Request {
		return true
	}
	l.trap.hit(kind, slices.Clone(l.ids))
	return false
}

// replies carries what the server sends. The client gets all of it before it is reset, except for what a trap has
// caught.
func (l *link) replies() {
	defer func() {
		reset(l.server)
		_ = l.to.Close() // a pipe's never fails
	}()
	var buffer []byte
	for {
		p, err := readPacket(l.server, &buffer)
		if err != nil {
			return
		}
		if !l.receive(p) {
			l.abort()
			return
		}
		if l.proxy.deliver(l.to, p) != nil {
			return
		}
	}
}

// receive looks at a packet of a reply, and returns false when it must not arrive. An error reply arrives, and the trap
// is set again: the loss of it would prove nothing.
func (l *link) receive(p packet) bool {
	l.busy.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	trap := l.trap
	l.trap = nil
	switch {
	case trap == nil:
		return true
	case p.refuses():
		l.proxy.set(trap)
		return true
	}
	trap.hit(l.kind, slices.Clone(l.ids))
	return false
}

// deliver sends a packet on, unless nothing passes.
func (p *Proxy) deliver(to io.Writer, packet packet) error {
	if err := p.gate.pass(p.ctx); err != nil {
		return err
	}
	_, err := to.Write(packet)
	return err
}

func (l *link) abort() {
	reset(l.client)
	reset(l.server)
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // it may be closed already
	_ = c.Close()
}

// Loss is what a trap loses.
type Loss string

// The parts of a statement that can be lost. The connection is reset in both cases.
const (
	Reply   Loss = "reply"   // the server has applied it, and the client is not told
	Request Loss = "request" // the server has never seen it
)

type Hit struct {
	Kind Kind
	IDs  []int64 // of tasks that it named, a few of them
}

// Trap waits for the n-th statement of a kind.
type Trap struct {
	Hits <-chan Hit // gets one, when it was lost

	kind  Kind
	loses Loss
	left  int // statements of the kind to let pass
	hits  chan Hit
}

// Set lets the n-th statement of the kind from now on meet the loss; 1 is the next one.
func (p *Proxy) Set(kind Kind, loses Loss, n int) *Trap {
	hits := make(chan Hit, 1)
	t := &Trap{Hits: hits, hits: hits, kind: kind, loses: loses, left: n - 1}
	p.set(t)
	return t
}

func (p *Proxy) set(t *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
}

// Unset takes a trap away that has not caught anything.
func (p *Proxy) Unset(t *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = slices.DeleteFunc(p.traps, func(other *Trap) bool { return other == t })
}

// spring counts a statement and returns the trap that it falls into, if any.
func (p *Proxy) spring(kind Kind) *Trap {
	if kind == Other {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.traps {
		if t.kind != kind {
			continue
		}
		if t.left > 0 {
			t.left--
			continue
		}
		p.traps = slices.Delete(p.traps, i, i+1)
		return t
	}
	return nil
}

func (t *Trap) hit(kind Kind, ids []int64) { t.hits <- Hit{kind, ids} } // once, for it has been taken away

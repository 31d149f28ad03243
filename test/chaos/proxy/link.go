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

// replies carries what the server sends. The client gets all of it before it is reset, but for what a trap has caught.
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

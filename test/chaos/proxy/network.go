package proxy

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// Shape is a bad network.
type Shape struct {
	Latency time.Duration // of every packet
	Jitter  time.Duration // at most so much more, at random
	Slice   int           // bytes that travel at once; 0: all
	Rate    int           // bytes a second, each way of a connection; 0: no limit
}

var errClosed = errors.New("the proxy is closed")

// deliver sends a packet on, through the network as it is now.
func (p *Proxy) deliver(to io.Writer, packet []byte) error {
	if err := p.gate.pass(p.ctx); err != nil {
		return err
	}
	s := p.shape.Load()
	if s == nil {
		_, err := to.Write(packet)
		return err
	}
	wait := s.Latency
	if s.Jitter > 0 {
		wait += rand.N(s.Jitter)
	}
	if err := p.wait(wait); err != nil {
		return err
	}
	for len(packet) > 0 {
		n := len(packet)
		if s.Slice > 0 {
			n = min(n, s.Slice)
		}
		if _, err := to.Write(packet[:n]); err != nil {
			return err
		}
		packet = packet[n:]
		if s.Rate > 0 {
			if err := p.wait(time.Duration(n) * time.Second / time.Duration(s.Rate)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Proxy) wait(d time.Duration) error {
	select {
	case <-p.ctx.Done():
		return errClosed
	case <-time.After(d):
		return nil
	}
}

// gate is open, or holds everybody until it is.
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

package main

import (
	"context"
	"net"
	"sync"

	"github.com/go-sql-driver/mysql"
)

// forwarder is the way from the process to its server. When the address moves, connections from before carry nothing
// any more, in either direction, and are not reset. New ones lead to the server.
type forwarder struct {
	dsn      string // leads through it
	target   string
	listener net.Listener
	links    sync.WaitGroup

	mu    sync.Mutex
	moved chan struct{} // closed for the connections from before a move
	open  []net.Conn    // both ends of each
	old   []net.Conn    // from before the move
}

func newForwarder(ctx context.Context, dsn string) (*forwarder, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	f := &forwarder{target: cfg.Addr, moved: make(chan struct{})}
	if f.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	cfg.Addr = f.listener.Addr().String()
	f.dsn = cfg.FormatDSN()
	f.links.Go(func() {
		for {
			c, err := f.listener.Accept()
			if err != nil {
				return // closed
			}
			f.links.Go(func() { f.carry(ctx, c) })
		}
	})
	return f, nil
}

func (f *forwarder) carry(ctx context.Context, client net.Conn) {
	server, err := new(net.Dialer).DialContext(ctx, "tcp", f.target)
	if err != nil {
		_ = client.Close()
		return
	}
	f.mu.Lock()
	moved := f.moved
	f.open = append(f.open, client, server)
	f.mu.Unlock()
	var ways sync.WaitGroup
	ways.Go(func() { carryBytes(client, server, moved) })
	ways.Go(func() { carryBytes(server, client, moved) })
	ways.Wait()
}

// carryBytes ends both connections when one ends. After the address has moved, the other one is not told.
func carryBytes(from, to net.Conn, moved <-chan struct{}) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		select {
		case <-moved:
			if err != nil {
				return
			}
			continue
		default:
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			_ = from.Close() // one of the two is closed already
			_ = to.Close()
			return
		}
	}
}

func (f *forwarder) move() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.moved)
	f.moved = make(chan struct{})
	f.old, f.open = f.open, nil
}

// forget ends the connections from before the move.
func (f *forwarder) forget() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.old {
		_ = c.Close() // its end may have closed it
	}
	f.old = nil
	return nil
}

func (f *forwarder) close() {
	_ = f.listener.Close()
	f.move()
	_ = f.forget()
	f.links.Wait()
}

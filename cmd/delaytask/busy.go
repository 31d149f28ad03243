package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// busy shows on a terminal how long a command has worked, once that is over a second. The first output takes its place.
type busy struct {
	mu    sync.Mutex // guards what follows
	line  io.Writer  // nil: no terminal, or something else was written
	begun time.Time
	shown bool
	ended chan struct{}
}

const (
	busyAfter = time.Second
	busyEvery = 200 * time.Millisecond
)

// working shows that the command works, until end is called.
func (a *app) working() (end func()) {
	if !a.watched {
		return func() {}
	}
	terminal := raw(a.stderr)
	if c, ok := terminal.(clearing); ok {
		terminal = c.Writer
	}
	return a.busy.begin(terminal)
}

// begin shows the line from now on, until end is called.
func (b *busy) begin(terminal io.Writer) (end func()) {
	b.mu.Lock()
	b.line, b.begun, b.ended = terminal, time.Now(), make(chan struct{})
	ended := b.ended
	b.mu.Unlock()
	go func() {
		every := time.NewTicker(busyEvery)
		defer every.Stop()
		for {
			select {
			case now := <-every.C:
				b.draw(now)
			case <-ended:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		b.clear()
		close(ended)
	})
}

func (b *busy) draw(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if took := now.Sub(b.begun); b.line != nil && took >= busyAfter {
		_, _ = fmt.Fprintf(b.line, "\rworking, %d s ", int(took.Seconds()))
		b.shown = true
	}
}

// clear takes the line away for good.
func (b *busy) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		_, _ = io.WriteString(b.line, "\r\x1b[K")
	}
	b.line, b.shown = nil, false
}

// clearing is a stream of the same terminal.
type clearing struct {
	io.Writer
	busy *busy
}

func (c clearing) Write(p []byte) (int, error) {
	c.busy.clear()
	return c.Writer.Write(p)
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// busy shows on a terminal how long a command has worked, once that is over a second, and how far it has come where
// that is known. Other output takes its place. The line comes back after output that ends its line, such as a warning.
type busy struct {
	mu      sync.Mutex // guards what follows
	line    io.Writer  // nil: no terminal, or the last output did not end its line
	columns int
	begun   time.Time
	done    int
	total   int    // 0: it is not known how far the work has come
	noun    string // what is counted
	shown   bool
}

const (
	busyAfter = time.Second
	busyEvery = 200 * time.Millisecond
)

// begin shows the line from now on, until end is called.
func (b *busy) begin(terminal io.Writer, columns int) (end func()) {
	b.mu.Lock()
	b.line, b.columns, b.begun = terminal, columns, time.Now()
	b.mu.Unlock()
	ended := make(chan struct{})
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
		close(ended)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.erase()
		b.line = nil
	})
}

// counts says how many of the counted things are done.
func (b *busy) counts(done, total int, noun string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total, b.noun = done, total, noun
}

func (b *busy) draw(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	took := now.Sub(b.begun)
	if b.line == nil || took < busyAfter {
		return
	}
	text := fmt.Sprintf("working, %d s ", int(took.Seconds()))
	if b.total > 0 {
		words := fmt.Sprintf("%s of %s %s, %d s", grouped(b.done), grouped(b.total), b.noun, int(took.Seconds()))
		text = barred(b.columns, float64(b.done)/float64(b.total), words)
	}
	_, _ = io.WriteString(b.line, "\r"+text+eraseRest)
	b.shown = true
}

func (b *busy) erase() {
	if b.shown {
		_, _ = io.WriteString(b.line, "\r"+eraseRest)
	}
	b.shown = false
}

// clearing is a stream of the same terminal.
type clearing struct {
	io.Writer
	busy *busy
}

func (c clearing) Write(p []byte) (int, error) {
	c.busy.mu.Lock()
	defer c.busy.mu.Unlock()
	c.busy.erase()
	if !bytes.HasSuffix(p, []byte("\n")) {
		c.busy.line = nil
	}
	return c.Writer.Write(p)
}

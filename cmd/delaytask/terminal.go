package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"
)

func (a *app) newBar(total int, capped bool, now func() time.Time) *bar {
	b := &bar{columns: a.columns, total: total, of: "of", now: now}
	if capped {
		b.of = "of at least"
	}
	if a.watched {
		terminal := raw(a.stderr) // whose cursor the bar moves
		b.note = func(format string, args ...any) { _, _ = fmt.Fprintf(terminal, format, args...) }
	}
	return b
}

// confirm asks for a confirmation. The caller has checked that stdin is a terminal.
func (a *app) confirm(ctx context.Context, question string) error {
	a.note("%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read cannot be interrupted: on Ctrl-C the goroutine is left behind, and ends with the process
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		if line == "y" || line == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		a.note("\n")
		return context.Cause(ctx)
	}
}

// working shows that the command works, until end is called.
func (a *app) working() (end func()) {
	if !a.watched {
		return func() {}
	}
	terminal := raw(a.stderr)
	if c, ok := terminal.(clearing); ok {
		terminal = c.Writer
	}
	return a.busy.begin(terminal, a.columns)
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	barWidth = 40
	barEvery = 100 * time.Millisecond // a slow terminal must not slow the work
)

// bar is a progress bar on a terminal. Elsewhere it writes nothing.
type bar struct {
	note  func(format string, args ...any) // nil: no terminal
	total int
	now   func() time.Time
	next  time.Time
	words int // on the line
}

func (a *app) newBar(total int, now func() time.Time) *bar {
	b := &bar{total: total, now: now}
	if a.watched {
		terminal := raw(a.stderr) // whose cursor the bar moves
		b.note = func(format string, args ...any) { _, _ = fmt.Fprintf(terminal, format, args...) }
	}
	return b
}

// set shows a count.
func (b *bar) set(done int) {
	b.show(float64(done), float64(b.total), fmt.Sprintf("%s of %s", grouped(done), grouped(b.total)))
}

// show draws the bar with a text beside it.
func (b *bar) show(done, total float64, words string) {
	if b.note == nil || b.now().Before(b.next) && done < total {
		return
	}
	b.next = b.now().Add(barEvery)
	filled := min(barWidth, int(barWidth*done/max(total, 1)))
	b.note("\r[%s%s] %-*s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), b.words, words)
	b.words = len(words) // overwrites the end of a longer line
}

// end begins a new line, so that further output does not overwrite the bar.
func (b *bar) end() {
	if b.note != nil {
		b.note("\n")
	}
}

var errDeclined = errors.New("nothing was changed; add --yes to go on without being asked")

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

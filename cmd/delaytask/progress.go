package main

import (
	"strings"
	"time"
)

const (
	barWidth = 40
	barEvery = 100 * time.Millisecond // a terminal over a slow line must not slow the work
)

// bar shows on a terminal how much of a long change is done. It writes nothing where nobody looks.
type bar struct {
	note  func(format string, args ...any) // nil: nobody looks
	total int
	now   func() time.Time
	next  time.Time
}

func (a *app) newBar(total int, now func() time.Time) *bar {
	b := &bar{total: total, now: now}
	if a.watched {
		b.note = a.note
	}
	return b
}

func (b *bar) set(done int) {
	if b.note == nil || b.now().Before(b.next) && done < b.total {
		return
	}
	b.next = b.now().Add(barEvery)
	filled := min(barWidth, barWidth*done/max(b.total, 1))
	b.note("\r[%s%s] %s of %s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), grouped(done),
		grouped(b.total))
}

// end leaves the line, so that what follows does not overwrite the bar.
func (b *bar) end() {
	if b.note != nil {
		b.note("\n")
	}
}

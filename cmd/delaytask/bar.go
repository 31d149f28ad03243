package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

const (
	barWidth = 40                     // columns
	leastBar = 10                     // a shorter bar shows nothing
	barEvery = 100 * time.Millisecond // a slow terminal must not slow the work
)

// eraseRest erases a line from the cursor on.
const eraseRest = "\x1b[K"

// barred draws a bar and words in one line of a terminal. Columns of 0 are not known. Where the bar has no room, the
// words are left.
func barred(columns int, part float64, words string) string {
	width := barWidth
	if columns > 0 {
		words = runewidth.Truncate(words, columns-1, "…") // a full line would wrap
		width = min(width, columns-1-len("[] ")-runewidth.StringWidth(words))
	}
	if width < leastBar {
		return words
	}
	filled := max(0, min(width, int(float64(width)*part))) // 0 too where part is no number
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", filled), strings.Repeat(".", width-filled), words)
}

// bar is a progress bar on a terminal. Elsewhere it writes nothing.
type bar struct {
	note    func(format string, args ...any) // nil: no terminal
	columns int
	total   int
	of      string // "of", or "of at least" where more may match
	now     func() time.Time
	next    time.Time
	drawn   bool
}

// set shows a count, unless the last one was shown a moment ago.
func (b *bar) set(done int) {
	total := max(b.total, done)
	if b.now().Before(b.next) && done < total {
		return
	}
	b.show(float64(done), float64(total), fmt.Sprintf("%s %s %s", grouped(done), b.of, grouped(total)))
}

// show draws the bar with a text beside it.
func (b *bar) show(done, total float64, words string) {
	if b.note == nil {
		return
	}
	b.next, b.drawn = b.now().Add(barEvery), true
	b.note("\r%s%s", barred(b.columns, done/total, words), eraseRest)
}

// end begins a new line, so that further output does not overwrite the bar.
func (b *bar) end() {
	if b.drawn {
		b.note("\n")
	}
}

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// table writes aligned columns. On a terminal that is too narrow it cuts texts, and where that does not do, it writes
// each row as lines of names and values.
type table struct {
	w      io.Writer
	screen screen
	rows   [][]cell
	header bool
	cuts   []int // the columns that may be cut
}

// cell is one field of a table.
type cell struct {
	text string
	as   style
}

const (
	gap      = 2 // columns between two cells
	leastCut = 8 // columns that are left of a text
)

func (a *app) newTable(header ...string) *table { return newTable(a.stdout, a.screen, header...) }

func newTable(w io.Writer, s screen, header ...string) *table {
	t := &table{w: w, screen: s, header: len(header) > 0}
	if t.header {
		t.row(header...)
	}
	return t
}

// row adds a line.
func (t *table) row(texts ...string) {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		if cells[i].text = oneLine(text); cells[i].text == "" {
			cells[i].text = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// paint gives a cell of the last row a style.
func (t *table) paint(column int, as style) { t.rows[len(t.rows)-1][column].as = as }

// mayCut says which columns are texts that may be cut.
func (t *table) mayCut(columns ...int) *table {
	t.cuts = columns
	return t
}

func (t *table) flush() error {
	widths, fits := t.widths()
	out := t.lines(widths)
	if !fits && t.header {
		out = t.records()
	}
	if _, err := io.WriteString(raw(t.w), out); err != nil { // the cells are escaped, and colours must not be
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// widths returns the width of each column, and whether they fit the screen. The widest text that may be cut loses until
// they do.
func (t *table) widths() (widths []int, fit bool) {
	for _, cells := range t.rows {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(c.text))
		}
	}
	if t.screen.width == 0 {
		return widths, true
	}
	over := gap*(len(widths)-1) - t.screen.width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for _, i := range t.cuts {
			if widths[i] > leastCut && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return widths, false
		}
		widths[widest]--
	}
	return widths, true
}

func (t *table) lines(widths []int) string {
	var out strings.Builder
	for n, cells := range t.rows {
		for i, c := range cells {
			if t.header && n == 0 {
				c.as = bold
			}
			text := c.text
			if slices.Contains(t.cuts, i) {
				text = runewidth.Truncate(text, widths[i], "…")
			}
			out.WriteString(t.screen.paint(text, c.as))
			if i < len(cells)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(text)+gap))
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// records writes each row as lines of names and values, which are cut at the end of the screen.
func (t *table) records() string {
	var out strings.Builder
	names := 0
	for _, c := range t.rows[0] {
		names = max(names, runewidth.StringWidth(c.text))
	}
	for n, cells := range t.rows[1:] {
		if n > 0 {
			out.WriteString("\n")
		}
		for i, c := range cells {
			name := runewidth.FillRight(t.rows[0][i].text, names+gap)
			value := runewidth.Truncate(c.text, max(t.screen.width-names-gap, leastCut), "…")
			out.WriteString(t.screen.paint(name, dim) + t.screen.paint(value, c.as) + "\n")
		}
	}
	return out.String()
}

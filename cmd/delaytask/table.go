package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// table writes aligned columns. Cells hold what anybody may have stored, so control characters never reach the terminal.
type table struct {
	w *tabwriter.Writer
}

func newTable(w io.Writer, header ...string) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

// row adds a line. Errors of the writer come out of flush.
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if cell = clean(cell); cell == "" {
			cells[i] = "-"
		} else {
			cells[i] = cell
		}
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// clean makes one line without control characters, which could move a terminal's cursor or change its colours.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r) && r != ' ':
			return unicode.ReplacementChar
		default:
			return r
		}
	}, s)
}

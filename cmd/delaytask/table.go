package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table writes aligned columns.
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
		if cell = oneLine(cell); cell == "" {
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

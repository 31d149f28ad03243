package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// list is the JSON of every command that prints more than one thing.
type list[T any] struct {
	Items []T    `json:"items"`          // never null
	Next  string `json:"next,omitempty"` // where the next page begins; absent on the last one
}

// printJSON writes indented JSON in which <, > and & stay as they are: people read it.
func (a *app) printJSON(v any) error {
	if err := encode(a.stdout, v, "  "); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func encode(w io.Writer, v any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(v)
}

func (a *app) printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// note writes beside the output. Where stderr cannot be written there is nobody left to tell.
func (a *app) note(format string, args ...any) { _, _ = fmt.Fprintf(a.stderr, format, args...) }

// isTerminal reports whether a person is at the other end. The null device looks like a terminal and is none.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

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

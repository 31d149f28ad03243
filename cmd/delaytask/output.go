package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// list is the JSON of every command that prints more than one thing.
type list[T any] struct {
	Items []T    `json:"items"`          // never null
	Next  string `json:"next,omitempty"` // where the next page begins; absent on the last one

	Stopped bool `json:"stopped,omitempty"` // it has looked at many tasks; there may be more
}

// viewsOf is what a list shows. It is not nil: an empty list is [] in JSON.
func viewsOf[T, V any](all []T, view func(*T) V) []V {
	views := make([]V, len(all))
	for i := range all {
		views[i] = view(&all[i])
	}
	return views
}

// printJSON writes indented JSON without escaping <, > and &: people read it.
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

// say prints a value with --json, and otherwise a sentence.
func (a *app) say(v any, format string, args ...any) error {
	if a.json {
		return a.printJSON(v)
	}
	return a.printf(format, args...)
}

// painted writes what is escaped and may have colours.
func (a *app) painted(text string) error {
	if _, err := io.WriteString(raw(a.stdout), text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// note writes to stderr, and ignores errors.
func (a *app) note(format string, args ...any) { _, _ = fmt.Fprintf(a.stderr, format, args...) }

// noteRedacted says what to do about masks, where people read.
func (a *app) noteRedacted(redacted bool) {
	if redacted && !a.json {
		a.note("Secrets are hidden; --raw shows what is stored.\n")
	}
}
